"""The scripts that make a shell complete ``memx``.

Owns three short scripts that call ``memx`` back with the words typed so far; the application itself answers them.
"""

from __future__ import annotations

_BASH = """\
_memx_complete() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" _MEMX_COMPLETE=complete_bash memx 2>/dev/null))
}
complete -o default -F _memx_complete memx
"""

_ZSH = """\
#compdef memx
_memx_complete() {
    eval "$(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _MEMX_COMPLETE=complete_zsh memx 2>/dev/null)"
}
compdef _memx_complete memx
"""

_FISH = """\
function __memx_complete
    set -lx _MEMX_COMPLETE complete_fish
    set -lx _TYPER_COMPLETE_FISH_ACTION $argv[1]
    set -lx _TYPER_COMPLETE_ARGS (commandline -cp)
    memx 2>/dev/null
end
complete --command memx --no-files --arguments '(__memx_complete get-args)' --condition '__memx_complete is-args'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}

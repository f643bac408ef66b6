"""``memxd``: the daemon's own command line, ``python -m memxd`` and the console script.

Owns the flags, which it makes from the settings table, and nothing else: no terminal library, so that the daemon starts
fast. ``memxd serve`` runs in the foreground until a signal comes. Exit codes are those of sysexits.h (docs/
CONFIGURATION.md); 64 = wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from memxd import __version__
from memxd.config import SETTINGS, Config
from memxd.errors import StartupError
from memxd.settings import Setting

EX_USAGE = 64
#: Verbs of memx that are looked for here as well: they are about the daemon as a program.
_SHARED = {
    "service": "install, start, stop, status, restart, remove, logs: memxd under systemd or launchd",
    "config": "show, path, check: the settings",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EX_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words and words[0] in _SHARED:
        from memxd.cli.app import run_memx

        return run_memx(words, "memxd")
    arguments = vars(_parser().parse_args(words))
    if arguments.pop("command") != "serve":
        print(__version__)
        return 0
    file = arguments.pop("config")
    try:
        config = Config.load(arguments, None, file)
    except StartupError as error:
        print(f"memxd: {error.message}", file=sys.stderr)
        return error.exit_code
    from memxd.daemon import run

    return run(config, reread=lambda: Config.load(arguments, None, file))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="memxd", description="Long-term memory for AI agents: the daemon.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    commands.add_parser("version", help="print the version")
    for name, text in _SHARED.items():
        commands.add_parser(name, help=text)
    serve = commands.add_parser(
        "serve",
        help="serve the socket in the foreground",
        description="Serve the socket in the foreground until SIGTERM or SIGINT. Every flag can also stand in the "
        "environment or in the config file; docs/CONFIGURATION.md has the table.",
    )
    serve.add_argument("--config", metavar="FILE", help="the TOML file to read [MEMXD_CONFIG]")
    for setting in SETTINGS:
        _add_flag(serve, setting)
    return parser


def _add_flag(parser: argparse.ArgumentParser, setting: Setting) -> None:
    """Values stay text: Config parses and checks them, whichever source they come from."""
    if not setting.flag:
        return
    default = "" if setting.default in (None, "") else f" (default {setting.default})"
    text = f"{setting.help}{default} [{setting.env}]".replace("%", "%%")
    if setting.kind == "bool":
        parser.add_argument(setting.flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        return
    metavar = (setting.unit or setting.kind).upper()
    parser.add_argument(setting.flag, dest=setting.name, metavar=metavar, default=None, help=text)


if __name__ == "__main__":
    sys.exit(main())

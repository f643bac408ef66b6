"""Writes docs/CONFIGURATION.md from the settings table of memxd/config.py.

Owns the page's form and the sentences about precedence; names, types, units, limits, defaults and help come from
``memxd.config.SETTINGS``, so that the page and the daemon cannot disagree. ``python -m scripts.gen_config_docs``
writes; ``--check`` exits 1 when the committed page differs. ``make docs`` and the architecture tests call it.
"""

from __future__ import annotations

import argparse
import sys

from memxd.config import SETTINGS
from memxd.settings import Setting
from scripts.gen_proto import ROOT

PAGE = ROOT / "docs" / "CONFIGURATION.md"

HEAD = """# Configuration

Made from the settings table in [memxd/config.py](../memxd/config.py) by `make docs`; change that, not this page.

memxd needs no configuration. Every setting has a default, and the default daemon uses no network.

A setting is named the same everywhere: `max_pending` in the file, `MEMXD_MAX_PENDING` in the environment,
`--max-pending` for `memxd serve`. A flag wins over the environment, the environment over the file, the file over the
default. An empty environment variable counts as absent. A name that memxd does not know, and a value outside its
limits, end the start with exit code 78 and a message that names the key and where it stood.

The file is TOML: the one named by `--config`, else by `MEMXD_CONFIG`, else `$XDG_CONFIG_HOME/memxd/config.toml`
(`~/.config/memxd/config.toml`; on macOS `~/Library/Application Support/memxd/config.toml`). Only a file that was named
must exist. A file that holds a secret must be readable by its owner alone (`chmod 600`). `memx config path|show|check`
tells which file it is, what holds and from where, and whether it is sound ([docs/OPERATIONS.md](OPERATIONS.md)).

```toml
# ~/.config/memxd/config.toml
log_level = "info"
time_zone = "Europe/Berlin"
workers = 8
```
"""

CLIENTS = """## Read by clients

| variable | read by | meaning |
|---|---|---|
| `MEMXD_SOCKET` | daemon, `memx`, Python client | The socket ([docs/SOCKET.md](SOCKET.md)). |
| `MEMX_AGENT` | `memx` | The agent part of the scope when `--agent` is not given. |
| `MEMX_USER` | `memx` | The user part of the scope when `--user` is not given. |

## Read by the build

| variable | meaning |
|---|---|
| `MEMXD_REQUIRE_EXTENSIONS` | `1` makes a kernel that does not compile an error; else its plain Python twin runs. |
| `MEMXD_DEBUG_EXTENSIONS` | `1` builds the kernels with bounds checks and sanitizers. |
"""


def shown_default(setting: Setting) -> str:
    """The default as it would be written in the file."""
    if setting.default is None:
        return "see the meaning"
    if isinstance(setting.default, bool):
        return f"`{str(setting.default).lower()}`"
    return f'`"{setting.default}"`' if isinstance(setting.default, str) else f"`{setting.default}`"


def row(setting: Setting) -> str:
    """One line of the table."""
    kind = "text" if setting.kind in ("str", "choice", "path", "socket", "zone", "url") else setting.kind
    notes = ""
    if setting.secret:
        notes = " Secret: never logged, no flag."
    elif not setting.in_file:
        notes = " Flag and environment only."
    elif setting.live:
        notes = " SIGHUP changes it in a running daemon."
    cells = [
        f"`{setting.name}`",
        f"`{setting.env}`",
        f"{kind}: {setting.limit}" if setting.limit else kind,
        shown_default(setting),
        setting.help + notes,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def page() -> str:
    """The whole page."""
    lines = [
        HEAD,
        "## Settings\n",
        "| setting | environment | type and limits | default | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [row(setting) for setting in SETTINGS]
    lines += ["", CLIENTS.rstrip()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when the page differs")
    made = page()
    if parser.parse_args().check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == made
        if not same:
            print(f"{PAGE.relative_to(ROOT)} is not what memxd/config.py says; run `make docs`", file=sys.stderr)
        return 0 if same else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

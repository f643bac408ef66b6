"""The texts of the systemd units: one for a user's own manager, one template for the machine's.

Owns every line of them and why it is there. Pure: text from a ``Plan``; ``systemctl.py`` installs it. The user's unit
holds only what a user's manager really applies: what needs namespaces is added when the manager proved able
(``sandbox``). Lines that an older systemd would complain of are left out for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memxd.errors import ConfigError, DatabaseDamagedError, DataInUseError, ModelFileError, SocketPathError
from memxd.operation.plan import Plan

UNIT = "memxd.service"
TEMPLATE = "memxd@.service"
#: Exit codes that a restart cannot mend: wrong usage, and those of the errors that name what to change.
_FINAL = (ConfigError, DatabaseDamagedError, DataInUseError, ModelFileError, SocketPathError)
FINAL_CODES = (64, *sorted({error.exit_code for error in _FINAL}))
#: From this version a restart's delay can grow.
_BACKOFF = 254
#: From this version the manager itself sends SIGHUP and waits for the answer.
_NOTIFY_RELOAD = 253
_RELOAD = "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'"

#: What works without privilege, by seccomp, limits and prctl. Background work of the daemon lowers its own priority,
#: and the model's threads choose their cores.
_UNPRIVILEGED = """\
NoNewPrivileges=yes
UMask=0077
LimitCORE=0
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=nice setpriority sched_setaffinity
SystemCallErrorNumber=EPERM
"""
#: What needs namespaces of its own: a user's manager can give them where the kernel lets users make some.
SANDBOX = (
    "ProtectSystem=strict",
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
)
#: What only the machine's manager can do.
_SYSTEM = """\
AmbientCapabilities=
CapabilityBoundingSet=
DevicePolicy=closed
PrivateIPC=yes
PrivateUsers=yes
ProtectProc=invisible
RemoveIPC=yes
"""


def user_unit(plan: Plan, *, version: int, sandbox: Sequence[str]) -> str:
    """The unit for ``systemctl --user``. ``version`` is systemd's; ``sandbox``: what of ``SANDBOX`` works here."""
    lines = [
        *_head("memxd, long-term memory for AI agents", version),
        *_service(plan, version),
        *(f"Environment={_word(f'{name}={value}')}" for name, value in plan.environment.items()),
        *_folders(plan),
        "",
        "# Applied by a user's manager without privilege.",
        *_UNPRIVILEGED.splitlines(),
        _families(network=plan.network),
    ]
    if sandbox:
        lines += ["", "# Needs unprivileged user namespaces; they worked when this file was made."]
        lines += ["PrivateUsers=yes", *sandbox, *_writable(plan)]
    return "\n".join([*lines, "", "[Install]", "WantedBy=default.target", ""])


def system_template(plan: Plan, *, version: int) -> str:
    """The template for the machine's manager: ``memxd@ada.service`` runs for user ada, apart from her home.

    Data in /var/lib/memxd/ada, socket in /run/memxd-ada. The network is closed: the model is on board.
    """
    home = Path(plan.command[0]).is_relative_to("/home") or Path(plan.command[0]).is_relative_to("/root")
    lines = [
        *_head("memxd for %i, long-term memory for AI agents", version),
        *_service(plan, version),
        "Environment=MEMXD_DATA_DIR=%S/memxd/%i",
        "Environment=MEMXD_SOCKET=%t/memxd-%i/memxd.sock",
        "User=%i",
        "StateDirectory=memxd/%i",
        "StateDirectoryMode=0700",
        "RuntimeDirectory=memxd-%i",
        "RuntimeDirectoryMode=0700",
        "RuntimeDirectoryPreserve=yes",
        "",
        *_UNPRIVILEGED.splitlines(),
        *SANDBOX,
        *_SYSTEM.splitlines(),
        "ProtectHome=read-only" if home else "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateNetwork=yes",
        "IPAddressDeny=any",
        _families(network=False),
    ]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target", ""])


def _head(description: str, version: int) -> list[str]:
    limits = ["StartLimitIntervalSec=0"] if version >= _BACKOFF else ["StartLimitIntervalSec=600", "StartLimitBurst=10"]
    return ["# Written by `memx service install`; do not edit: `systemctl edit` keeps your own lines apart.",
            "[Unit]", f"Description={description}", *limits, ""]  # fmt: skip


def _service(plan: Plan, version: int) -> list[str]:
    """Running, restarting, stopping."""
    reload = ["Type=notify-reload"] if version >= _NOTIFY_RELOAD else ["Type=notify", _RELOAD]
    backoff = ["RestartSec=1", "RestartSteps=6", "RestartMaxDelaySec=60"] if version >= _BACKOFF else ["RestartSec=15"]
    return [
        "[Service]",
        *reload,
        "NotifyAccess=main",
        f"ExecStart={' '.join(map(_argument, plan.command))}",
        "Restart=on-failure",
        f"RestartPreventExitStatus={' '.join(map(str, FINAL_CODES))}",
        *backoff,
        # The first start converts the model, a migration copies the database.
        "TimeoutStartSec=900",
        f"TimeoutStopSec={plan.stop_seconds}",
        "WatchdogSec=90",
        "KillMode=mixed",
    ]


def _folders(plan: Plan) -> list[str]:
    """The socket's folder, when it is the usual one, comes and stays with the manager."""
    if plan.runtime and plan.socket.parent == Path(plan.runtime) / "memxd":
        return ["RuntimeDirectory=memxd", "RuntimeDirectoryMode=0700", "RuntimeDirectoryPreserve=yes"]
    return []


def _writable(plan: Plan) -> list[str]:
    """Where a sandboxed daemon may write: its data, its socket, and a temporary folder of its own where that hides
    neither the socket nor the program."""
    folders = [plan.data_dir, *([] if _folders(plan) else [plan.socket.parent])]
    needed = (*folders, Path(plan.command[0]), *map(Path, plan.environment.values()))
    shared = any(path.is_relative_to(tmp) for path in needed for tmp in ("/tmp", "/var/tmp"))
    private = ["ReadWritePaths=/tmp"] if shared else ["PrivateTmp=yes"]
    return ["ProtectHome=read-only", f"ReadWritePaths={' '.join(_word(str(p)) for p in folders)}", *private]


def _families(*, network: bool) -> str:
    return "RestrictAddressFamilies=AF_UNIX" + (" AF_INET AF_INET6" if network else "")


def _word(text: str) -> str:
    """One word of a list of paths or of Environment=, quoted where it must be."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"' if escaped == "" or any(c in escaped for c in " \t\"'\\;") else escaped


def _argument(text: str) -> str:
    """One word of a command line, where a dollar sign would begin a variable."""
    return _word(text).replace("$", "$$")

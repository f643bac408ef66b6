"""The text of the launchd property list, for macOS.

Owns its keys and why they are there. Pure: bytes from a ``Plan``; ``launchctl.py`` installs it. launchd has no way to
tell exit codes apart, so only a crash (a signal) starts the daemon again: a wrong setting ends it once, with its reason
in the log.
"""

from __future__ import annotations

import plistlib
from pathlib import Path

from memxd.operation.plan import Plan

LABEL = "memxd"


def agent_path(home: Path) -> Path:
    """Where a user's agents lie."""
    return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def log_path(home: Path) -> Path:
    """Where the service's log goes; macOS shows this folder in Console."""
    return home / "Library" / "Logs" / "memxd" / "memxd.log"


def property_list(plan: Plan, home: Path) -> bytes:
    """The agent as XML."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(plan.command),
            "EnvironmentVariables": dict(plan.environment),
            "RunAtLoad": True,
            "KeepAlive": {"Crashed": True},
            "ThrottleInterval": 10,
            "ExitTimeOut": plan.stop_seconds,
            "ProcessType": "Adaptive",
            "Umask": 0o077,
            "HardResourceLimits": {"Core": 0},
            "WorkingDirectory": "/",
            "StandardOutPath": str(log_path(home)),
            "StandardErrorPath": str(log_path(home)),
        }
    )

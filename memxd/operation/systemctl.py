"""The service under a user's systemd: installs the unit and speaks to ``systemctl --user``.

Owns the commands and what their answers mean; the texts are ``systemd.py``'s. Also writes the machine-wide template,
for root. Called through ``service.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from memxd.data_dir import prepare_data_dir
from memxd.errors import ConfigError, ServiceManagerError
from memxd.operation.plan import Plan
from memxd.operation.service import ServiceState, home_folder, run_tool, write_file
from memxd.operation.systemd import FINAL_CODES, SANDBOX, TEMPLATE, UNIT, system_template, user_unit

SYSTEM_FOLDER = Path("/etc/systemd/system")
_SHOWN = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "StatusText", "Result", "ExecMainStatus",
    "NRestarts",
)  # fmt: skip
_RUNNING = ("active", "reloading")
#: Seconds more than the unit's own limits, in which systemd itself gives up.
_GRACE = 30.0
_START_SECONDS = 900.0
#: The longest that ``drain_seconds`` allows, and what closing may take. The settings are not asked: a service with
#: wrong ones can be stopped, too.
_STOP_SECONDS = 3_660.0
#: How the daemon begins the one line that says why it does not start.
_REFUSAL = "memxd: "


class SystemdUser:
    """``systemctl --user`` for ``memxd.service``."""

    name = "systemd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        config = environ.get("XDG_CONFIG_HOME", "")
        folder = Path(config) if config.startswith("/") else home_folder(environ) / ".config"
        self.file = folder / "systemd" / "user" / UNIT

    @cached_property
    def version(self) -> int:
        """systemd's version, for what it understands."""
        _, text = run_tool(["systemctl", "--version"], self._environ)
        found = re.match(r"systemd (\d+)", text)
        return int(found[1]) if found else 0

    def install(self) -> Path:
        """Write the unit, make the data directory, and have it started at login."""
        plan = Plan.of(self._environ)
        prepare_data_dir(plan.data_dir)
        self._reach()
        write_file(self.file, user_unit(plan, version=self.version, sandbox=self._sandbox()).encode())
        self._systemctl("daemon-reload")
        self._systemctl("enable", UNIT)
        return self.file

    def install_template(self, folder: Path = SYSTEM_FOLDER) -> Path:
        """Write the machine-wide template (root only); its instances are started by systemctl."""
        write_file(folder / TEMPLATE, self.template().encode())
        self._machine("daemon-reload")
        return folder / TEMPLATE

    def template(self) -> str:
        """The machine-wide template's text."""
        return system_template(Plan.of(self._environ), version=self.version)

    def unit(self) -> str:
        """The unit's text as an installation would write it."""
        return user_unit(Plan.of(self._environ), version=self.version, sandbox=self._sandbox())

    def start(self) -> None:
        """Start it; returns when it says READY. The reason when it does not is in the message."""
        self._demand_file()
        self._change("start", _START_SECONDS)

    def stop(self) -> None:
        """Stop it and wait."""
        self._demand_file()
        self._change("stop", _STOP_SECONDS)

    def restart(self) -> None:
        """Stop and start."""
        self._demand_file()
        self._change("restart", _START_SECONDS)

    def remove(self) -> bool:
        """Stop, disable, delete the file."""
        if not self.file.exists():
            return False
        self._systemctl("disable", "--now", UNIT, seconds=_STOP_SECONDS)
        self.file.unlink(missing_ok=True)
        self._systemctl("daemon-reload")
        run_tool(["systemctl", "--user", "reset-failed", UNIT], self._environ)  # refused when nothing had failed
        return True

    def state(self) -> ServiceState:
        """From ``systemctl show``."""
        facts = self._show() if self.file.exists() else {}
        active = facts.get("ActiveState", "inactive")
        text = f"{active} ({facts.get('SubState', 'dead')})"
        if active in _RUNNING and facts.get("StatusText"):
            text += f": {facts['StatusText']}"
        if active == "failed":
            text += f": {self._why_failed(facts)}"
        if facts.get("NRestarts", "0") != "0":
            text += f"; {facts['NRestarts']} restarts after crashes"
        return ServiceState(
            manager=self.name,
            file=self.file,
            installed=self.file.exists(),
            current=self._is_current(),
            enabled=facts.get("UnitFileState") == "enabled",
            active=active in _RUNNING,
            pid=int(facts.get("MainPID") or 0),
            text=text if facts else "not installed",
        )

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """The journal of this unit; lines are JSON, as the daemon writes them."""
        more = ["--follow"] if follow else ["--no-pager"]
        return ["journalctl", "--user", "--unit", UNIT, "--output", "cat", "--lines", str(lines), *more]

    def _is_current(self) -> bool:
        if not self.file.exists():
            return False
        text = self.file.read_text(encoding="utf-8", errors="replace")
        sandbox = [option for option in SANDBOX if f"\n{option}\n" in text]
        try:
            plan = Plan.of(self._environ)
        except ConfigError:
            return False  # an installation would be refused; `memx config check` says why
        return text == user_unit(plan, version=self.version, sandbox=sandbox)

    def _sandbox(self) -> list[str]:
        """Which of ``SANDBOX`` this manager can give a service: tried with a service that does nothing."""
        if self._works(SANDBOX):
            return list(SANDBOX)
        return [option for option in SANDBOX if self._works([option])] if self._works([]) else []

    def _works(self, options: Sequence[str]) -> bool:
        given = [f"--property={option}" for option in ("PrivateUsers=yes", "PrivateTmp=yes", *options)]
        code, _ = run_tool(["systemd-run", "--user", "--wait", "--quiet", "--collect", *given, "true"], self._environ)
        return code == 0

    def _reach(self) -> None:
        code, text = run_tool(["systemctl", "--user", "show-environment"], self._environ)
        if code:
            raise ServiceManagerError(
                f"no systemd of this user answers ({text.splitlines()[0] if text else 'no reason given'}); log in "
                "properly (machinectl shell USER@, ssh) rather than by su, or run the daemon with: memxd serve"
            )

    def _demand_file(self) -> None:
        if not self.file.exists():
            raise ServiceManagerError("the service is not installed; run: memx service install")

    def _change(self, verb: str, seconds: float) -> None:
        code, text = run_tool(["systemctl", "--user", verb, UNIT], self._environ, seconds=seconds + _GRACE)
        if code:
            self._reach()
            raise ServiceManagerError(f"systemd could not {verb} memxd: {self._why_failed(self._show()) or text}")

    def _show(self) -> dict[str, str]:
        text = self._systemctl("show", UNIT, "--property", ",".join(_SHOWN))
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def _why_failed(self, facts: Mapping[str, str]) -> str:
        """The daemon's own reason when it gave one, else what systemd knows."""
        code = facts.get("ExecMainStatus", "0")
        _, log = run_tool(self.log_command(20, follow=False), self._environ)
        said = [line.removeprefix(_REFUSAL) for line in log.splitlines() if line.startswith(_REFUSAL)]
        reason = said[-1] if said else "memx service logs tells more"
        final = "; it is not started again until that is mended" if code in map(str, FINAL_CODES) else ""
        return f"{facts.get('Result', 'failed')}, exit code {code}: {reason}{final}"

    def _systemctl(self, *words: str, seconds: float = 60.0) -> str:
        code, text = run_tool(["systemctl", "--user", *words], self._environ, seconds=seconds)
        if code:
            raise ServiceManagerError(f"systemctl --user {words[0]}: {text}")
        return text

    def _machine(self, *words: str) -> None:
        code, text = run_tool(["systemctl", *words], self._environ)
        if code:
            raise ServiceManagerError(f"systemctl {words[0]}: {text}")

"""The service under launchd: installs the agent and speaks to ``launchctl``.

Owns the commands and what their answers mean; the property list is ``launchd.py``'s. Called through ``service.py``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from memxd.autostart import is_serving
from memxd.data_dir import prepare_data_dir
from memxd.errors import ConfigError, ServiceManagerError
from memxd.operation.launchd import LABEL, agent_path, log_path, property_list
from memxd.operation.plan import Plan
from memxd.operation.service import ServiceState, home_folder, run_tool, write_file

_START_SECONDS = 900.0


class Launchd:
    """``launchctl`` for the agent ``memxd`` of this user."""

    name = "launchd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._home = home_folder(environ)
        self.file = agent_path(self._home)
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    def install(self) -> Path:
        """Write the agent; launchd reads it at the next login, ``start`` at once."""
        plan = Plan.of(self._environ)
        prepare_data_dir(plan.data_dir)
        log_path(self._home).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(self.file, property_list(plan, self._home))
        return self.file

    def unit(self) -> str:
        """The agent's text as an installation would write it."""
        return property_list(Plan.of(self._environ), self._home).decode()

    def start(self) -> None:
        """Load it, which starts it (RunAtLoad); returns when the daemon serves."""
        self._demand_file()
        if self._loaded():
            self._launchctl("kickstart", self._target)
        else:
            self._launchctl("bootstrap", self._domain, str(self.file))
        self._wait()

    def stop(self) -> None:
        """Unload it until the next login; launchd would start a merely killed one at its leisure."""
        self._demand_file()
        if self._loaded():
            self._launchctl("bootout", self._target)

    def restart(self) -> None:
        """Unload and load, so that a changed file holds."""
        self.stop()
        self.start()

    def remove(self) -> bool:
        """Unload it and delete its file."""
        if not self.file.exists():
            return False
        self.stop()
        self.file.unlink()
        return True

    def state(self) -> ServiceState:
        """From ``launchctl print``."""
        code, text = run_tool(["launchctl", "print", self._target], self._environ)
        pid, last = re.search(r"^\s*pid = (\d+)", text, re.M), re.search(r"^\s*last exit code = (\d+)", text, re.M)
        installed = self.file.exists()
        told = f"runs (pid {pid[1]})" if pid and not code else f"stopped, exit code {last[1]}" if last else "stopped"
        return ServiceState(
            manager=self.name,
            file=self.file,
            installed=installed,
            current=installed and self._is_current(),
            enabled=installed,
            active=code == 0 and pid is not None,
            pid=int(pid[1]) if pid and not code else 0,
            text=told if installed else "not installed",
        )

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """The end of the log file."""
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(log_path(self._home))]

    def _is_current(self) -> bool:
        try:
            plan = Plan.of(self._environ)
        except ConfigError:
            return False  # an installation would be refused; `memx config check` says why
        return self.file.read_bytes() == property_list(plan, self._home)

    def _demand_file(self) -> None:
        if not self.file.exists():
            raise ServiceManagerError("the service is not installed; run: memx service install")

    def _loaded(self) -> bool:
        return run_tool(["launchctl", "print", self._target], self._environ)[0] == 0

    def _wait(self) -> None:
        socket, end = Plan.of(self._environ).socket, time.monotonic() + _START_SECONDS
        while not is_serving(socket):
            time.sleep(0.2)
            if not self.state().active and not is_serving(socket):
                raise ServiceManagerError(f"memxd did not start; why is at the end of {log_path(self._home)}")
            if time.monotonic() >= end:
                raise ServiceManagerError(f"memxd does not serve yet; see {log_path(self._home)}")

    def _launchctl(self, *words: str) -> None:
        code, text = run_tool(["launchctl", *words], self._environ, seconds=_START_SECONDS)
        if code:
            raise ServiceManagerError(f"launchctl {words[0]}: {text}")

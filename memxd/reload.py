"""SIGHUP: the settings are read again; what can change while the daemon serves does, the rest is told.

Owns which settings are live (``Setting.live``: the log's level and form, the time to drain) and the Config that holds
now. A file that has become wrong changes nothing: its complaint goes to the log. Called by ``daemon.py``.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

from memxd.config import BY_NAME, Config
from memxd.errors import StartupError
from memxd.logs import configure
from memxd.notify import Manager

log = logging.getLogger("memxd.reload")


class Live:
    """The settings that hold now. ``read`` reads them from where they came from at the start."""

    def __init__(self, config: Config, read: Callable[[], Config]) -> None:
        self.config = config
        self._read = read

    def reload(self, manager: Manager) -> None:
        """Read the settings again and take over what can change. Never raises for a wrong file."""
        manager.reloading()
        try:
            fresh = self._read()
        except StartupError as error:
            log.error("settings not reloaded", extra={"fields": {"reason": error.message}})
            manager.ready("serving; the settings were not reloaded: " + error.message)
            return
        changed, waiting = self._differences(fresh)
        self.config = dataclasses.replace(self.config, **{name: getattr(fresh, name) for name in changed})
        configure(self.config.log_level, self.config.log_format)
        log.info("settings reloaded", extra={"fields": {"changed": changed, "need_restart": waiting}})
        rest = f"; a restart is needed for: {', '.join(waiting)}" if waiting else ""
        manager.ready(f"serving{rest}")

    def _differences(self, fresh: Config) -> tuple[list[str], list[str]]:
        """The names that differ: those taken over, and those that need a restart."""
        names = [name for name in BY_NAME if getattr(fresh, name) != getattr(self.config, name)]
        live = [name for name in names if BY_NAME[name].live]
        return live, [name for name in names if not BY_NAME[name].live]

"""What a service needs to know to run the daemon: command, environment, folders, whether it needs the network.

Owns the choice of what of the caller's environment goes into a unit: memxd's own variables and the XDG folders, never a
secret (a unit file can be read by ``systemctl show``). The texts are ``systemd.py``'s and ``launchd.py``'s.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memxd.config import CONFIG_NAME, SETTINGS, Config
from memxd.errors import ConfigError

#: Beside memxd's settings: what decides where the config file and the data are.
_KEPT = (CONFIG_NAME, "XDG_CONFIG_HOME", "XDG_DATA_HOME")


@dataclass(frozen=True, slots=True)
class Plan:
    """How the daemon is to be run. ``network``: the embedder asks an endpoint, or a TCP port is served; ``runtime``:
    XDG_RUNTIME_DIR or "".
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    data_dir: Path
    socket: Path
    runtime: str
    network: bool
    stop_seconds: int

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Plan:
        """The plan for this interpreter, this user and this environment.

        Raises ConfigError for wrong settings, and for a secret that stands in the environment only.
        """
        config = Config.load({}, environ)
        for setting in SETTINGS:
            if setting.secret and environ.get(setting.env):
                raise ConfigError(
                    f"{setting.env} is set, and a service does not see it; write {setting.name} into the config file "
                    f"(memx setup --non-interactive --set {setting.name}=-) and unset the variable"
                )
        names = [*(s.env for s in SETTINGS), *_KEPT]
        return cls(
            command=(sys.executable, "-m", "memxd", "serve"),
            environment={name: environ[name] for name in names if environ.get(name)},
            data_dir=config.data_dir,
            socket=config.socket,
            runtime=environ.get("XDG_RUNTIME_DIR", ""),
            network=config.embedder == "openai" or bool(config.listen),
            stop_seconds=int(config.drain_seconds) + 60,
        )

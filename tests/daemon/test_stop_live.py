"""memx stop ends the daemon whoever started it; what cannot take its place leaves it alone."""

from __future__ import annotations

import json
from typing import Any

from commandkit import memx

from memxd.client import Client


def test_a_service_that_is_not_installed_ends_no_daemon(daemon: Any, environ: dict[str, str]) -> None:
    environ = environ | {"MEMXD_SOCKET": str(daemon.socket)}
    for verb in ("start", "restart"):
        refused = memx(None, environ, "service", verb)
        assert (refused.returncode, "memx service install" in refused.stderr) == (5, True)
    told = memx(None, environ, "service", "logs")
    assert (told.returncode, "memxd.log" in told.stderr) == (5, True)
    with Client(daemon.socket) as client:
        assert client.count() == 0


def test_stop_ends_the_daemon_on_the_socket_and_waits_for_it(daemon: Any, environ: dict[str, str]) -> None:
    environ = environ | {"MEMXD_SOCKET": str(daemon.socket)}
    done = memx(None, environ, "stop", "--json")
    assert (done.returncode, json.loads(done.stdout)["pid"]) == (0, daemon.process.pid), done.stderr
    assert daemon.process.wait(10) == 0
    again = memx(None, environ, "stop")
    assert (again.returncode, again.stdout) == (0, f"no daemon runs on {daemon.socket}\n")

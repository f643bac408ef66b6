"""The entry script of a process that is to be killed at a failpoint: arms memxd.failpoints, then runs the real program.

``python torture_armed.py '{"point": ..., "hit": n, "delay": s, "trigger": ..., "reached": ..., "steps": n}' memxd ...``
(or ``memx restore ...``). Writes each point's name into ``reached`` once. Once the file ``trigger`` is there, the n-th
time that ``point`` is reached kills the process with SIGKILL, ``delay`` seconds later. ``steps``: so many harmless
migrations more than the product has, so that a start has something to migrate. Nothing of this is in the product.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any


class Bomb:
    """What happens at a point."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._wanted = wanted
        self._left = int(wanted["hit"])
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            if name not in self._seen:
                self._seen.add(name)
                with open(self._wanted["reached"], "a", encoding="utf-8") as file:
                    file.write(name + "\n")
            if name != self._wanted["point"] or not os.path.exists(self._wanted["trigger"]):
                return
            self._left -= 1
            if self._left != 0:
                return
        if self._wanted["delay"]:
            threading.Thread(target=self._later, daemon=True).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def _later(self) -> None:
        time.sleep(self._wanted["delay"])
        os.kill(os.getpid(), signal.SIGKILL)


def grow_schema(steps: int) -> None:
    """A schema that is ``steps`` versions ahead of the product's."""
    from memxd.store import migrating, restoring, store
    from memxd.store.schema import MIGRATIONS

    future = (*MIGRATIONS, *(f"CREATE TABLE torture_{n}(x INTEGER) STRICT;" for n in range(steps)))
    plain = migrating.migrate
    store.migrate = lambda connection, path, at: plain(connection, path, at, future)  # type: ignore[assignment]
    restoring.MIGRATIONS = future  # type: ignore[assignment]


def main() -> int:
    """Arm, then be the daemon or the command."""
    wanted, program, *words = json.loads(sys.argv[1]), *sys.argv[2:]
    sys.argv = [program, *words]
    from memxd import failpoints

    assert wanted["point"] in ("", *failpoints.POINTS), wanted["point"]
    failpoints.arm(Bomb(wanted))
    if wanted["steps"]:
        grow_schema(wanted["steps"])
    if program == "memxd":
        from memxd.__main__ import main as run

        return run(words)
    from memxd.cli.app import run_memx

    return run_memx(words, program)


if __name__ == "__main__":
    sys.exit(main())

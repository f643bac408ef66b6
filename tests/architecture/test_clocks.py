"""What waits, waits by the clock that nobody sets: the wall clock is read in few places, all of which name moments."""

from __future__ import annotations

import ast

import house

#: Where the present moment as a date is needed, and what for.
WALL = {
    "memxd/engine/ids.py": "the engine's clock, which tests replace",
    "memxd/daemon.py": "when the daemon was started, for Status",
    "memxd/service/guard.py": "whether a token has expired",
    "memxd/cli/token.py": "when a token was made",
    "memxd/cli/moving.py": "the name of the folder that a restore keeps",
    "memxd/cli/render.py": "how long ago something was",
    "memxd/cli/scope.py": "which memories have expired by now",
    "memxd/cli/undoing.py": "until when an undo is offered, as the memory tells it",
    "memxd/cli/values.py": "times that a user gives from now",
    "memxd/logs.py": "when the last error was, for Status",
}
READS = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime"}


def reads_wall_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Name) and owner.id in {"time", "datetime", "date"} and node.func.attr in READS


def test_timers_run_by_the_monotonic_clock() -> None:
    found = {
        name
        for name in house.modules()
        if not name.startswith("memxd/bench/")
        for node in ast.walk(house.tree(name))
        if reads_wall_clock(node)
    }
    strangers = found - set(WALL)
    assert not strangers, f"wait by time.monotonic, or say in WALL what the moment is for: {strangers}"

"""The calls before which imports step aside.

Owns the moment from which such a call counts: when gRPC's polling thread hears of it, before its message has come and
before a thread runs it, since each of these steps waits for the interpreter too. Until it is answered, imports wait
(engine/courtesy.py). Which calls they are is the interceptor's to say; the threads are those of a pool.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from memxd.service.pool import Pool

if TYPE_CHECKING:
    from memxd.engine.courtesy import Courtesy


class Ahead(ThreadPoolExecutor):
    """Runs tasks on ``pool``, and tells of them from their submission to their end. ``courtesy`` is asked each time."""

    def __init__(self, pool: Pool, courtesy: Callable[[], Courtesy]) -> None:
        super().__init__(max_workers=1)  # it never makes one
        self._pool, self._courtesy = pool, courtesy

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As ``Pool.submit``."""
        courtesy = self._courtesy()

        def task() -> None:
            try:
                fn(*args, **kwargs)
            finally:
                courtesy.go()

        courtesy.come()
        try:
            return self._pool.submit(task)
        except BaseException:
            courtesy.go()
            raise

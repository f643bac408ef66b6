"""Whether the daemon takes calls, how many it takes at once, and the threads that answer them.

Owns the three conditions (starting, serving, draining), which pools there are and their limits, and the engine once it
is open; not how a task gets to a thread (``pool.py``). Refuses by raising NotReadyError, OverloadedError or
ShuttingDownError. Knows no RPC by name. The interceptor
asks it for every call; ``daemon.py`` opens, drains and closes it; the servicers get the engine from it.

Why pools of our own: gRPC would queue a refusal behind the calls that made it necessary, and a long stream or an idle
watcher would hold a thread that answers searches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from memxd.errors import NotReadyError, OverloadedError, ShuttingDownError
from memxd.service.ahead import Ahead
from memxd.service.pool import AtOnce, Pool
from memxd.service.visits import Patience

if TYPE_CHECKING:
    from memxd.engine import Engine


#: Seconds that a call may wait for its request, or reflection for the next one, while others want its room.
_CALL_PATIENCE = 1.0
#: Seconds that a stream may bring nothing or read nothing while others want its place.
_STREAM_PATIENCE = 10.0
#: For so long after a stream was refused others count as wanting a place.
_WANTED_SECONDS = 5.0


class Condition(Enum):
    """What the daemon is about."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"


class Gate:
    """The one door all calls pass."""

    #: How long a refused caller should wait before it tries again, in milliseconds.
    RETRY_AFTER_MS = 100

    def __init__(
        self,
        *,
        workers: int,
        max_pending: int,
        max_streams: int,
        stream_idle: float = 300.0,
        on_crowd: Callable[[bool], None] | None = None,
    ) -> None:
        #: How long a stream may bring nothing, in seconds.
        self.stream_idle = stream_idle
        self._patience = Patience()
        queued = self._patience.wake
        self.calls = Pool(workers, max_pending, "memxd-call", on_crowd, patience=_CALL_PATIENCE, on_queue=queued)
        #: The same threads, for calls before which imports step aside.
        self.asking = Ahead(self.calls, lambda: self.engine.courtesy)
        self.streams = Pool(max_streams, max_streams, "memxd-stream", patience=_STREAM_PATIENCE)
        #: Flush, Rebuild, Backup and the like, which may take long: they wait for each other, never in the way of
        #: anything else.
        self.upkeep = Pool(4, 16, "memxd-upkeep", patience=_STREAM_PATIENCE, on_queue=queued)
        #: Health checks: never behind anything else.
        self.swift = Pool(2, 1_024, "memxd-swift", patience=_CALL_PATIENCE, on_queue=queued)
        #: Refusals: they must cost less than what they refuse, and do not even wait for a thread.
        self.at_once = AtOnce()
        #: Health watchers hold a thread each, for as long as they watch; threads are made when needed.
        self.watches = Pool(256, 256, "memxd-watch")
        #: Reflection holds a thread as long as its client keeps the stream open, or until another wants it.
        self.reflection = Pool(8, 8, "memxd-reflect", patience=_CALL_PATIENCE)
        self._patience.pools = (self.calls, self.upkeep, self.swift)
        self._wanted_at = -_WANTED_SECONDS
        self._condition = Condition.STARTING
        self._engine: Engine | None = None

    @property
    def condition(self) -> Condition:
        """What the daemon is about."""
        return self._condition

    @property
    def engine(self) -> Engine:
        """The engine; only while serving or draining."""
        if self._engine is None:
            raise NotReadyError("the daemon is still starting; try again in a moment", metadata=self._retry())
        return self._engine

    def open(self, engine: Engine) -> None:
        """From now on calls are taken."""
        self._engine = engine
        self._condition = Condition.SERVING

    def drain(self) -> None:
        """From now on new calls are refused; running ones go on."""
        self._condition = Condition.DRAINING

    def check(self, pool: Pool) -> None:
        """Raise when a new call for this pool is to be refused."""
        if self._condition is Condition.DRAINING:
            raise ShuttingDownError("the daemon is stopping; try again when it is back")
        if self._condition is Condition.STARTING:
            raise NotReadyError("the daemon is still starting; try again in a moment", metadata=self._retry())
        if not pool.takes():
            if pool is self.streams:
                self._wanted_at = time.monotonic()
            raise self.overloaded(pool)

    def idle_limit(self) -> float:
        """How long a stream may bring nothing, in seconds: less while others are refused for want of its place."""
        wanted = time.monotonic() - self._wanted_at < _WANTED_SECONDS
        return min(self.stream_idle, _STREAM_PATIENCE) if wanted else self.stream_idle

    def overloaded(self, pool: Pool) -> OverloadedError:
        """The refusal of one call too many."""
        what = "calls" if pool is self.calls else "streams"
        return OverloadedError(
            f"too many {what} at once; try again shortly", metadata=self._retry() | {"limit": str(pool.limit)}
        )

    def check_draining(self) -> None:
        """For streams, between two items: raise when the daemon is stopping."""
        if self._condition is Condition.DRAINING:
            raise ShuttingDownError("the daemon is stopping; items without an answer were not stored")

    def wait_idle(self, seconds: float, hurry: Callable[[], bool]) -> bool:
        """Wait until no call runs; False when time is over or ``hurry`` says so. Calls whose request does not come are
        not waited for."""
        end = time.monotonic() + seconds
        pools = (self.calls, self.streams, self.upkeep)

        def look() -> bool:
            for pool in pools:
                pool.end_unbegun(_CALL_PATIENCE)
            return hurry()

        return all(pool.wait_idle(max(0.0, end - time.monotonic()), look) for pool in pools)

    def close(self) -> None:
        """Join the threads of every pool. What still waits in them is dropped."""
        self._patience.close()
        for pool in (self.calls, self.streams, self.upkeep, self.reflection, self.watches, self.swift):
            pool.shutdown(wait=True, cancel_futures=True)

    def _retry(self) -> dict[str, str]:
        return {"retry_after_ms": str(self.RETRY_AFTER_MS)}

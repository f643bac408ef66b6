"""When a failed call is sent again, and after which pause.

Owns the policy and the account of one call's attempts; never sleeps itself, since sync and asyncio do that
differently. A call is sent again only when that is safe (a read, or a
write that carries a ``request_id``), when the failure may pass by itself, and when the caller's deadline leaves room.
Called by both clients.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from memxd.errors import MemxdError

#: Retryable by a person, but not by waiting a moment: a full disk stays full, a passed deadline stays passed.
_NOT_BY_WAITING = frozenset({"STORAGE_FULL", "DEADLINE_EXCEEDED"})


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently calls are sent again.

    ``attempts``: sends in all, at least 1 (1 = never again). Pauses in seconds grow threefold from ``first_pause`` up
    to ``longest_pause``; each is shortened by a random share of up to one half, so that clients do not come back all
    at once. A pause that the daemon asks for (``retry_after_ms``) is kept. The defaults bridge a restart of about one
    second.
    """

    attempts: int = 5
    first_pause: float = 0.05
    longest_pause: float = 1.0
    jitter: Callable[[], float] = random.random

    def pause(self, error: MemxdError, attempt: int, remaining: float | None) -> float | None:
        """Seconds to wait before the next send after the failed ``attempt`` (from 1); None = give up.

        ``remaining`` are the seconds until the caller's deadline, None = no deadline.
        """
        if attempt >= self.attempts or not error.retryable or error.reason in _NOT_BY_WAITING:
            return None
        pause = min(self.longest_pause, self.first_pause * 3.0 ** (attempt - 1)) * (1 - self.jitter() / 2)
        asked = error.metadata.get("retry_after_ms", "")
        if asked.isascii() and asked.isdigit():
            pause = max(pause, int(asked) / 1000)
        return pause if remaining is None or pause < remaining else None


#: For callers who would rather see the first failure.
NO_RETRY = Retry(attempts=1)


class Attempts:
    """The account of one call: what is left of its time, and whether it may be sent once more.

    ``timeout`` in seconds from now for all attempts together; infinity = no deadline.
    """

    def __init__(
        self, retry: Retry, timeout: float, *, repeatable: bool, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._retry = retry if repeatable else NO_RETRY
        self._monotonic = monotonic
        self._end = monotonic() + timeout
        self._made = 0

    def remaining(self) -> float | None:
        """Seconds left, never negative; None = no deadline."""
        return None if math.isinf(self._end) else max(0.0, self._end - self._monotonic())

    def pause_after(self, error: MemxdError) -> float:
        """Seconds to wait before the next send; raises ``error`` when there is to be none."""
        self._made += 1
        pause = self._retry.pause(error, self._made, self.remaining())
        if pause is None:
            raise error
        return pause

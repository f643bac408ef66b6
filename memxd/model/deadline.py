"""When a call must be done, and whether anybody still waits for it.

Made by the doors, handed down to every loop and wait below them. Owns no timer: whoever works asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from memxd.errors import CancelledError, DeadlineExceededError


def _never() -> bool:
    return False


@dataclass(slots=True)
class Deadline:
    """When a call must be done, on the monotonic clock in seconds; ``at`` None = never.

    ``is_cancelled`` tells whether the caller went away meanwhile. Loops and waits below the wire call ``check``.
    """

    at: float | None = None
    monotonic: Callable[[], float] = time.monotonic
    is_cancelled: Callable[[], bool] = _never

    def remaining(self) -> float | None:
        """Seconds left, never negative; None = no deadline."""
        return None if self.at is None else max(0.0, self.at - self.monotonic())

    def passed(self) -> bool:
        """Whether there is no use in going on; ``check`` says why."""
        return self.is_cancelled() or (self.at is not None and self.monotonic() >= self.at)

    def check(self) -> None:
        """Raise DeadlineExceededError or CancelledError when there is no use in going on."""
        if self.is_cancelled():
            raise CancelledError("the caller cancelled the call")
        if self.at is not None and self.monotonic() >= self.at:
            raise DeadlineExceededError(
                "the deadline passed before the work was done; allow more time (timeout=, memx --timeout). A single "
                "write that ends like this has changed nothing"
            )


#: For calls without a deadline.
NO_DEADLINE = Deadline()

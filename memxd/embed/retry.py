"""Trying an HTTP request again: how often, how long to wait, and when it is no use.

Owns the policy and the loop; ``openai`` sends through it. Waits are "full jitter" (Brooker 2015, "Exponential Backoff
And Jitter"): uniform between 0 and a cap that doubles, so that clients that failed together do not return together. A
Retry-After header is honoured instead when it fits the deadline. Messages name status codes, never bodies.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from memxd.errors import EmbedderUnavailableError
from memxd.model import Deadline

_TOO_MANY, _SERVER = 429, 500
_REFUSED = {401: "refuses the key", 403: "refuses the key", 404: "does not know the address or model"}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``tries`` in all; waits in seconds: the first is up to ``base``, none is longer than ``longest``."""

    tries: int = 4
    base: float = 0.25
    longest: float = 8.0


def send_with_retries(
    send: Callable[[float], httpx.Response],
    *,
    policy: RetryPolicy,
    timeout: float,
    deadline: Deadline,
    rng: random.Random,
    sleep: Callable[[float], object],
) -> httpx.Response:
    """A 2xx response of ``send(timeout in seconds)``.

    Tries again after 429, 5xx, timeouts and connection errors. EmbedderUnavailableError when the tries or the deadline
    do not allow another, or at once for any other status.
    """
    for attempt in range(policy.tries):
        deadline.check()
        left = deadline.remaining()
        wait: float | None = None
        try:
            response = send(timeout if left is None else max(0.001, min(timeout, left)))
        except httpx.TransportError as error:
            problem = f"the embedding service does not answer ({type(error).__name__})"
        except RuntimeError as error:
            deadline.check()  # at a stop the caller is gone as well: nothing is to be made of it
            # httpx's word for a client closed while the call ran.
            raise EmbedderUnavailableError("the embedder is closed") from error
        else:
            if response.is_success:
                return response
            problem = _problem(response.status_code)
            if response.status_code != _TOO_MANY and response.status_code < _SERVER:
                raise EmbedderUnavailableError(problem)
            wait = retry_after(response)
        deadline.check()
        wait = rng.uniform(0, min(policy.longest, policy.base * 2**attempt)) if wait is None else wait
        left = deadline.remaining()
        if attempt + 1 == policy.tries or wait > policy.longest or (left is not None and wait >= left):
            break
        sleep(wait)
    raise EmbedderUnavailableError(problem)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds a Retry-After header asks for (a number or a date; never negative), or None without a usable one."""
    value = response.headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        reference = parsedate_to_datetime(response.headers["date"])
    except (ValueError, TypeError, KeyError):
        return None
    return max(0.0, (_aware(moment) - _aware(reference)).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _problem(status: int) -> str:
    return f"the embedding service {_REFUSED.get(status, 'answers')} (HTTP {status})"

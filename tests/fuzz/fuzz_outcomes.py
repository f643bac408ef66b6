"""What the agents of the concurrency test share: a memory of what all of them did, and how a failed call is understood.

Owns the difference between "not carried out" (too busy, stopping) and "nobody knows" (the connection broke). Sends
nothing itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memxd.v1 import memory_pb2

SHARED_SCOPE = memory_pb2.Scope(agent_id="model", user_id="shared")


@dataclass
class Shared:
    """What all agents change together."""

    counter_id: str = ""
    increments: int = 0
    open_increments: int = 0
    fact_ids: dict[str, str] = field(default_factory=dict)
    fact_tags: dict[str, set[str]] = field(default_factory=dict)
    calls: int = 0
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class UnansweredError(Exception):
    """The daemon went away in the middle of a call: it may have been carried out or not."""


class StoppingError(UnansweredError):
    """The daemon said that it is stopping: the call was not carried out."""


def reason_of(error: Any) -> str:
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def meaning_of(error: Any) -> Exception:
    """What a failed call says about the daemon."""
    reason = reason_of(error)
    if reason == "SHUTTING_DOWN":
        return StoppingError()
    if not reason and error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return UnansweredError()
    return AssertionError(f"refused: {error.code().name} {reason} {error.details()}")


class Patient:
    """The stub, for reads that are repeated while the daemon is too busy."""

    def __init__(self, call: Callable[[str, Any], Any]) -> None:
        self._call = call

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def read(request: Any, timeout: float) -> Any:
            while (answer := self._call(method, request)) is None:
                time.sleep(0.01)
            return answer

        return read


def spelt(number: int) -> str:
    """A number in letters that no analyzer splits or stems."""
    return "".join("bcdfghjkmv"[int(digit)] for digit in str(number))

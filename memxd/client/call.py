"""One call as data: what to send, how to read the answer, and whether it may be sent again.

Owns the shape that the call tables (``memories.py``, ``searches.py``, ``links.py``, ``admin.py``) fill in and that
both clients carry out, so that each verb is written once and sync and asyncio cannot drift apart.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memxd.client import values

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from memxd.v1 import memory_pb2

T = TypeVar("T")

MEMORY_SERVICE = "/memxd.v1.MemoryService/"
ADMIN_SERVICE = "/memxd.v1.AdminService/"


@dataclass(frozen=True, slots=True)
class Bound:
    """The scope a client is bound to; None = not named, which the daemon reads as "default"."""

    agent_id: str | None = None
    user_id: str | None = None

    def override(self, agent_id: str | None, user_id: str | None) -> Bound:
        """The same scope with the given parts in place of its own."""
        if agent_id is None and user_id is None:
            return self
        return Bound(self.agent_id if agent_id is None else agent_id, self.user_id if user_id is None else user_id)

    def message(self) -> memory_pb2.Scope:
        """For the wire; raises InvalidArgumentError for text that cannot be sent."""
        return values.scope(self.agent_id, self.user_id)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A unary call.

    ``method`` is the full path of the RPC, ``response`` the message class of its answer, ``decode`` makes the caller's
    value of it. ``repeatable``: sending it twice has the effect of sending it once. ``timeout`` in seconds; None = the
    client's default.
    """

    method: str
    request: Message
    response: type[Message]
    decode: Callable[[Any], T]
    timeout: float | None = None
    repeatable: bool = True


def fresh_request_id(given: str | None) -> str:
    """The caller's request id, or a new one; "" stays "" (the caller wants none, and no retries)."""
    return str(uuid.uuid4()) if given is None else values.text("request_id", given)

"""Safe retries: the same ``request_id`` gives the same answer.

Owns the body digest and what a repeated id means. Runs inside the write transaction of a verb, so that an answer is
remembered if and only if the change is durable. Called by the verbs that write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from memxd.engine import answers
from memxd.engine.canonical import digest
from memxd.engine.validate import request_id as clean_request_id
from memxd.errors import FieldViolation, MemoryNotFoundError, RequestIdReusedError
from memxd.model import Scope
from memxd.store import ReadTxn, Remembered, WriteTxn

A = TypeVar("A", bound=answers.Answer)


@dataclass(frozen=True, slots=True)
class Retry:
    """A call's retry key: the scope it counts in, the RPC, the id (empty = none) and the digest of the body."""

    scope: Scope
    rpc: str
    request_id: str
    body: bytes

    @classmethod
    def of(cls, scope: Scope, rpc: str, request_id: str, *body: object) -> Retry:
        """The key of a call whose body (everything but the id) is ``body``."""
        clean = clean_request_id(request_id)
        return cls(scope, rpc, clean, bytes.fromhex(digest(*body)) if clean else b"")

    def known(self, read: ReadTxn) -> answers.Answer | None:
        """What was answered before, or None.

        Raises RequestIdReusedError when the id came with another body, MemoryNotFoundError when the memory it told of
        was erased since.
        """
        if not self.request_id:
            return None
        scope_no = ReadTxn.scope_no(read, self.scope)
        found = None if scope_no is None else read.recall(scope_no, self.rpc, self.request_id)
        return None if found is None else self._answer(found)

    def _answer(self, found: Remembered) -> answers.Answer:
        if found.body_hash != self.body:
            raise RequestIdReusedError(
                "request_id: was used for another request within the last 24 hours; use a new one",
                violations=(FieldViolation("request_id", "was used for another request within the last 24 hours"),),
                metadata={"field": "request_id"},
            )
        if found.answer is None:
            raise MemoryNotFoundError(
                "this request was carried out before, and the memory it told of was deleted since; "
                "use a new request_id to store it again"
            )
        return answers.load(found.answer)

    def once(self, txn: WriteTxn, work: Callable[[], tuple[A, list[int]]]) -> A:
        """The remembered answer, or that of ``work`` (answer, rids whose text it holds), remembered."""
        before = self.known(txn)
        if before is not None:
            return cast(A, before)
        answer, rids = work()
        if self.request_id:
            txn.remember(txn.scope_no(self.scope), self.rpc, self.request_id, self.body, answers.dump(answer), rids)
        return answer

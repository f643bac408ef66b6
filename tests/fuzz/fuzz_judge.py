"""What the daemon may answer, and what it may never say.

Owns the verdict on one refusal, one answer, and the log: no INTERNAL or UNKNOWN, ErrorInfo on every refusal of ours, no
text of a request and no path in any error or log line. Collects findings and a tally; sends nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from google.protobuf import descriptor as d
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from fuzz_generate import CANARY
from memxd.errors import BY_REASON, DOMAIN
from memxd.service.status import CODES
from memxd.v1 import memory_service_pb2 as pb

Code = grpc.StatusCode
#: Faults of the daemon; no request, however odd, may bring them about.
FAULTS = frozenset({Code.INTERNAL, Code.UNKNOWN, Code.DATA_LOSS, Code.UNAVAILABLE, Code.UNAUTHENTICATED})
#: Reasons that say the daemon is broken or gone.
FAULT_REASONS = frozenset({"INTERNAL", "STORAGE_FAILED", "STORAGE_FULL", "STORAGE_READ_ONLY", "SHUTTING_DOWN"})
#: A path of two parts or more, unless it is a ratio, a MIME type or a gRPC method.
PATH = re.compile(r"(?<![\w.])/(?:tmp|var|home|root|usr|etc|work|proc|run|data|opt|lib)\b[\w./-]*|\w+\.(?:py|so|db)\b")
MESSAGE_LIMIT = 4 * 1024 * 1024


class Judge:
    """Findings and tally of one run; safe to call from many threads."""

    def __init__(self, private_paths: Iterable[str]) -> None:
        self.findings: list[str] = []
        self.tally: Counter[tuple[str, str]] = Counter()
        self._paths = tuple(private_paths)
        self._lock = threading.Lock()

    def count(self, what: str, outcome: str) -> None:
        """One more."""
        with self._lock:
            self.tally[what, outcome] += 1

    def find(self, what: str, problem: str, raw: bytes = b"") -> None:
        """Something is wrong; ``raw`` is the request that showed it."""
        shown = f"{problem}\n    request {raw[:600].hex()}{'...' if len(raw) > 600 else ''} ({len(raw)} bytes)"
        with self._lock:
            self.findings.append(f"{what}: {shown}")

    # -- answers -----------------------------------------------------------------------------------------------------

    def refusal(self, what: str, error: Any, raw: bytes, *, left: bool = False, unknown: bool = False) -> None:
        """A failed call. ``left``: we cancelled it or let its deadline pass; ``unknown``: there is no such method."""
        code, info = error.code(), self._info(error)
        self.count(what, code.name if info is None else info.reason)
        text = self._text(error)
        self._secrets(what, text, raw)
        if left and code in (Code.CANCELLED, Code.DEADLINE_EXCEEDED):
            return
        if code is Code.UNIMPLEMENTED and unknown:
            return
        if code is Code.RESOURCE_EXHAUSTED and len(raw) > MESSAGE_LIMIT - 100:
            return
        if code in FAULTS or code is Code.UNIMPLEMENTED:
            self.find(what, f"{code.name}: {text}", raw)
        elif info is None:
            self.find(what, f"{code.name} without ErrorInfo: {text}", raw)
        elif CODES.get(BY_REASON.get(info.reason, Exception)) not in (code, None):  # type: ignore[call-overload]
            self.find(what, f"{code.name} with reason {info.reason}", raw)
        elif info.reason in FAULT_REASONS or info.reason not in BY_REASON:
            self.find(what, f"reason {info.reason}: {text}", raw)

    def answer(self, what: str, kind: type[Message], raw_answer: bytes, raw: bytes) -> Message | None:
        """A call that succeeded: its answer must be of its type and small, its item errors as good as refusals."""
        self.count(what, "OK")
        if len(raw_answer) > 3_670_016:
            self.find(what, f"an answer of {len(raw_answer)} bytes", raw)
        answer = kind.FromString(raw_answer)
        for error in item_errors(answer):
            self.count(what, f"item {error.reason}")
            self._secrets(what, f"{error.message} {error.field} {dict(error.metadata)}", raw)
            if error.reason not in BY_REASON or error.reason in FAULT_REASONS or not error.message:
                self.find(what, f"item error {error.reason}: {error.message}", raw)
        return answer

    def _secrets(self, what: str, text: str, raw: bytes) -> None:
        if CANARY.lower() in text.lower():
            self.find(what, f"the error quotes the request: {text[:500]}", raw)
        if PATH.search(text) or any(path in text for path in self._paths):
            self.find(what, f"the error tells a path: {text[:500]}", raw)

    @staticmethod
    def _text(error: Any) -> str:
        """Everything a caller can read in a refusal."""
        parts = [error.details() or ""]
        for key, value in error.trailing_metadata() or ():
            parts.append(value.decode("utf-8", "replace") if isinstance(value, bytes) else f"{key}={value}")
        return " ".join(parts)

    @staticmethod
    def _info(error: Any) -> error_details_pb2.ErrorInfo | None:
        status = rpc_status.from_call(error)
        for detail in status.details if status is not None else ():
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return info
        return None

    # -- the log -----------------------------------------------------------------------------------------------------

    def log(self, text: str) -> int:
        """Every line after the start; returns how many there were."""
        lines = text.partition('"message": "serving"')[2].splitlines()[1:]
        for line in lines:
            if CANARY.lower() in line.lower():
                self.find("log", f"a line quotes a request: {line[:500]}")
            if any(path in line for path in self._paths) or PATH.search(line):
                self.find("log", f"a line tells a path: {line[:1_500]}")
            try:
                level = json.loads(line)["level"]
            except (ValueError, KeyError, TypeError):
                self.find("log", f"not a line of ours: {line[:500]}")
                continue
            if level not in ("debug", "info", "warning"):
                self.find("log", f"trouble: {line[:3_000]}")
        return len(lines)


def item_errors(message: Message) -> Iterator[pb.ItemError]:
    """Every ItemError within an answer."""
    for each, value in message.ListFields():
        if each.message_type is None or each.message_type.GetOptions().map_entry:
            continue
        for part in value if each.is_repeated else (value,):
            if isinstance(part, pb.ItemError):
                yield part
            elif part.DESCRIPTOR.file.package == "memxd.v1":
                yield from item_errors(part)


def methods(*services: d.ServiceDescriptor) -> list[d.MethodDescriptor]:
    """All methods of the services."""
    return [method for service in services for method in service.methods]

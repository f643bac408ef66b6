"""What a daemon does when the file system refuses: one fault after the other under the same running process.

Owns the table of faults (which calls on which files fail with what), what each must answer, and the look afterwards:
what was acknowledged is there, searches go on, and when the fault is over everything works again by itself, soon. Used
by ``make torture ARGS=--faults`` and by the test of the same name.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb
from torture_process import Kill, Process
from torture_shim import ALL, CREATE, FULL, RENAME, SYNC, WRITE, Faults, compiler

SECONDS = 60.0
#: How long both legs may take until they serve again after the fault.
RECOVERY = 8.0
FULL_REASON, READ_ONLY, FAILED = "STORAGE_FULL", "STORAGE_READ_ONLY", "STORAGE_FAILED"


@dataclass(frozen=True)
class Fault:
    """``store`` and ``flush``: the reason that a Store and a Flush are refused with; "" = they are not. Where nothing
    can be stored there may be nothing to flush."""

    name: str
    error: int
    calls: int
    part: str
    store: str
    flush: str


FAULTS = (
    Fault("disk full", errno.ENOSPC, FULL, "", FULL_REASON, FULL_REASON),
    Fault("disk full, the log alone", errno.ENOSPC, FULL, "memxd.db-wal", FULL_REASON, FULL_REASON),
    Fault("disk full, the vector index", errno.ENOSPC, FULL, "index/vector", "", FULL_REASON),
    Fault("disk full, the keyword index", errno.ENOSPC, FULL, "index/keyword", "", FULL_REASON),
    Fault("disk full, the columns", errno.ENOSPC, FULL, "index/columns", "", FULL_REASON),
    Fault("quota used up", errno.EDQUOT, FULL, "", FULL_REASON, FULL_REASON),
    Fault("read-only file system", errno.EROFS, ALL & ~SYNC, "", READ_ONLY, READ_ONLY),
    Fault("permission lost", errno.EACCES, ALL & ~SYNC, "", READ_ONLY, READ_ONLY),
    Fault("the disk fails to write the log", errno.EIO, WRITE, "memxd.db-wal", FAILED, FAILED),
    Fault("the disk fails to sync the log", errno.EIO, SYNC, "memxd.db-wal", FAILED, FAILED),
    Fault("the disk fails everywhere", errno.EIO, ALL, "", FAILED, FAILED),
    Fault("the disk fails in the vector index", errno.EIO, ALL, "index/vector", "", FAILED),
    Fault("the disk fails in the keyword index", errno.EIO, WRITE | SYNC, "index/keyword", "", FAILED),
    Fault("no new names in the indexes", errno.ENOSPC, CREATE | RENAME, "index/", "", FULL_REASON),
)
CODES = {
    FULL_REASON: grpc.StatusCode.RESOURCE_EXHAUSTED,
    READ_ONLY: grpc.StatusCode.FAILED_PRECONDITION,
    FAILED: grpc.StatusCode.UNAVAILABLE,
}


@dataclass
class Outcome:
    """What came of one fault. ``recovered``: seconds until both legs served what was stored during it."""

    name: str
    failed: int = 0
    store: str = ""
    flush: str = ""
    message: str = ""
    recovered: float = 0.0
    problems: list[str] = field(default_factory=list)


class Under:
    """One daemon under faults, and what it has acknowledged."""

    def __init__(self, process: Process, faults: Any) -> None:
        self.process, self.faults = process, faults
        self.scope = memory_pb2.Scope(agent_id="faults", user_id="one")
        self.held: dict[str, str] = {}
        self._made = 0

    def content(self) -> str:
        """A text like no other, of letters."""
        self._made += 1
        return "fact zq" + "".join("bcdfghjkmv"[int(d)] for d in str(self._made)) + "x is held through faults"

    def store(self) -> tuple[str, str]:
        """(reason, message) of a Store's refusal; of one that was acknowledged, empty."""
        text = self.content()
        request = pb.StoreRequest(scope=self.scope, memory=pb.NewMemory(content=text))
        try:
            self.held[self.process.memory.Store(request, timeout=SECONDS).memory.id] = text
        except grpc.RpcError as error:
            return refusal(error)
        return "", ""

    def flush(self) -> tuple[str, str]:
        """As ``store``."""
        try:
            self.process.admin.Flush(admin_pb.FlushRequest(), timeout=SECONDS)
        except grpc.RpcError as error:
            return refusal(error)
        return "", ""

    def seen(self, mode: int, text: str) -> bool | None:
        """Whether a leg finds a text; None = it says that it is incomplete."""
        request = pb.SearchRequest(scope=self.scope, query=text, mode=mode, k=5, exact=True, record_retrieval=False)
        try:
            answer = self.process.memory.Search(request, timeout=SECONDS)
        except grpc.RpcError as error:
            if refusal(error)[0] == "INDEX_UNAVAILABLE":
                return None
            raise
        return None if answer.degraded else any(hit.memory.content == text for hit in answer.hits)

    def missing(self, sample: Sequence[str]) -> list[str]:
        """What a leg does not find of these, or the counts do not say."""
        count = self.process.memory.Count(pb.CountRequest(scope=self.scope), timeout=SECONDS).count
        wrong = [] if count == len(self.held) else [f"Count says {count}, {len(self.held)} are held"]
        for mode, leg in ((2, "vector"), (3, "keyword")):
            wrong += [
                f"the {leg} leg: {self.seen(mode, text)} for {text}" for text in sample if not self.seen(mode, text)
            ]
        return wrong

    def whole(self) -> list[str]:
        """Every record by both legs, and what Verify finds."""
        *_, last = self.process.admin.Verify(admin_pb.VerifyRequest(), timeout=SECONDS)
        return self.missing(list(self.held.values())) + [f"Verify: {p.part}: {p.message}" for p in last.problems]

    def endure(self, fault: Fault) -> Outcome:
        """The fault on, some work, the fault off, and the way back."""
        outcome = Outcome(fault.name)
        before = list(self.held.values())
        with self.faults.failing(fault.error, fault.calls, fault.part):
            for _ in range(6):
                outcome.store, outcome.message = self.store()
                self._expect(outcome, "Store", outcome.store, outcome.message, fault.store)
            self._searches_go_on(outcome, before)
            outcome.flush, message = self.flush()
            if outcome.flush or not fault.store:
                self._expect(outcome, "Flush", outcome.flush, message, fault.flush)
            self._searches_go_on(outcome, before)
            outcome.failed = self.faults.failed
        began = time.monotonic()
        if not outcome.failed:
            outcome.problems.append("no call failed: the fault did not reach the daemon")
        again = self.store()
        if again != ("", ""):
            outcome.problems.append(f"Store is still refused afterwards: {again}")
        sample = [*before[-3:], *list(self.held.values())[len(before) :]]
        while wrong := self.missing(sample):
            if time.monotonic() - began > RECOVERY:
                outcome.problems += wrong
                break
            time.sleep(0.05)
        outcome.recovered = time.monotonic() - began
        if (flushed := self.flush()) != ("", ""):
            outcome.problems.append(f"Flush is still refused afterwards: {flushed}")
        return outcome

    def _expect(self, outcome: Outcome, verb: str, reason: str, message: str, wanted: str) -> None:
        if reason != wanted:
            outcome.problems.append(f"{verb} answered {reason or 'OK'} ({message}), must be {wanted or 'OK'}")

    def _searches_go_on(self, outcome: Outcome, before: Sequence[str]) -> None:
        """At least one leg answers, and what was held before is found by it."""
        for text in before[-3:]:
            found = [self.seen(mode, text) for mode in (2, 3)]
            if True not in found or False in found:
                outcome.problems.append(f"the legs answer {found} for {text}")


def refusal(error: Any) -> tuple[str, str]:
    """(reason, message); the code must be the reason's own."""
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details if status is not None else ():
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
    reason = info.reason or f"none ({error.code().name})"
    if reason in CODES and error.code() is not CODES[reason]:
        reason += f" as {error.code().name}"
    return reason, error.details() or ""


def endure_all(folder: Path, faults: Sequence[Fault] = FAULTS) -> list[Outcome]:
    """All of them, then kill -9 in the middle of the last one's end, and a look at everything after the restart."""
    process = Process(folder)
    process.data_dir.mkdir(mode=0o700)
    switch = Faults(folder, process.data_dir)
    process.environ |= switch.environ
    try:
        process.start(Kill())
        under = Under(process, switch)
        for _ in range(40):
            assert under.store() == ("", "")
        pid = process.process.pid if process.process else 0
        outcomes = [under.endure(fault) for fault in faults]
        last = Outcome("kill -9 under a fault, restart")
        with switch.failing(errno.ENOSPC, FULL, "index/"):
            under.store()
            under.flush()
            if not process.running or process.process is None or process.process.pid != pid:
                last.problems.append("the daemon died by itself")
            process.kill()
        last.recovered = process.start(Kill())
        last.problems += under.whole()
        return [*outcomes, last]
    finally:
        process.kill()
        switch.close()


def run(as_json: bool) -> int:
    """``make torture ARGS=--faults``."""
    if compiler() is None:
        print("no C compiler: the shim that makes calls fail cannot be built", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mxf-") as folder:
        outcomes = endure_all(Path(os.path.realpath(folder)))
    if as_json:
        print(json.dumps([vars(outcome) for outcome in outcomes]))
    else:
        print("| fault | failing calls | Store | Flush | both legs again after | |")
        print("| --- | --- | --- | --- | --- | --- |")
        for o in outcomes:
            verdict = "as it must be" if not o.problems else "WRONG"
            print(
                f"| {o.name} | {o.failed} | {o.store or 'OK'} | {o.flush or 'OK'} | {o.recovered:.2f} s | {verdict} |"
            )
    for outcome in outcomes:
        for problem in outcome.problems[:8]:
            print(f"{outcome.name}: {problem}", file=sys.stderr)
    return 1 if any(outcome.problems for outcome in outcomes) else 0

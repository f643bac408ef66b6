"""One run against one daemon: many threads, each sending what its seed says.

Owns the choice of attacks and their sending; what is sent comes from ``fuzz_generate`` and ``fuzz_bytes``, what an
answer must be is ``fuzz_judge``'s. A step depends on (seed, thread, step) alone, but for ids and tokens learnt
meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf import descriptor as d
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

import fuzz_bytes
from fuzz_daemon import ROOT, Daemon, Vitals
from fuzz_generate import CANARY, Generator
from fuzz_guard import Guard
from fuzz_judge import Judge, methods
from fuzz_pool import Pool
from memxd.v1 import admin_service_pb2, admin_service_pb2_grpc, memory_service_pb2

SERVICES = [
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
]
UNKNOWN_METHODS = (
    "/memxd.v1.MemoryService/", "/memxd.v1.Nothing/Store", "/memxd.v1.MemoryService/store", f"/{CANARY}/x",
)  # fmt: skip
#: How often a method is called; 1 where nothing is said.
WEIGHTS = {
    "Rebuild": 0.1, "Compact": 0.1, "Verify": 0.1, "Backup": 0.1, "Flush": 0.2, "DeleteMany": 0.3,
    "Store": 3.0, "Search": 2.0, "SearchMany": 0.7,
}  # fmt: skip
CALL_SECONDS = 60.0
THREADS = 6


class Session:
    """A guarded daemon and the attack on it."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.daemon, self.seed = daemon, seed
        self.judge = Judge([str(daemon.folder), str(ROOT), "site-packages", "Traceback"])
        self.pool = Pool()
        self.steps = 0
        self.samples: list[Vitals] = []
        self._channel = daemon.channel()
        self.guard = Guard(self._channel)
        self._methods = methods(*SERVICES)
        self._weights = [WEIGHTS.get(m.name, 1.0) for m in self._methods]

    def prepare(self) -> None:
        """Store what is guarded and learn the model's name."""
        self.guard.store()
        self.pool.foreign_ids = self.guard.ids
        self.pool.folder = str(self.daemon.folder)
        status = admin_service_pb2_grpc.AdminServiceStub(self._channel).Status(
            admin_service_pb2.StatusRequest(), timeout=CALL_SECONDS
        )
        self.pool.model_id, self.pool.dimension = status.model.id, status.model.dimension

    def attack(self, count: int, seconds: float) -> None:
        """``count`` steps in all, or as many as fit into ``seconds``, whichever ends first (0 = no such end)."""
        end = time.monotonic() + (seconds or 1e9)
        each = -(-count // THREADS) if count else 10**9
        threads = [threading.Thread(target=self._work, args=(n, each, end)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if self.daemon.running:
                self.samples.append(self.daemon.vitals())
            time.sleep(0.5)

    def settle(self, threads: int, seconds: float = 20.0) -> Vitals:
        """What the daemon holds once it has got over it: at most ``threads`` threads, or after ``seconds``."""
        end = time.monotonic() + seconds
        while (now := self.daemon.vitals()).threads > threads and time.monotonic() < end:
            time.sleep(0.2)
        return now

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def _work(self, number: int, steps: int, end: float) -> None:
        try:
            for step in range(steps):
                if time.monotonic() > end or not self.daemon.running:
                    return
                if step % 40 == 0:
                    worker = Worker(self, self.daemon.channel())
                worker.step(random.Random(f"{self.seed}/{number}/{step}"))
                self.steps += 1
                if step % 40 == 39:
                    worker.channel.close()
        except Exception as error:  # a fault of the test itself must not pass for a quiet daemon
            self.judge.find("fuzz", f"thread {number} failed: {type(error).__name__}: {error}")

    def method(self, rng: random.Random) -> d.MethodDescriptor:
        """One of all."""
        return rng.choices(self._methods, self._weights)[0]


class Worker:
    """One thread's connection."""

    def __init__(self, session: Session, channel: grpc.Channel) -> None:
        self.session, self.channel = session, channel
        self.judge = session.judge

    def step(self, rng: random.Random) -> None:
        """One attack."""
        attacks: list[tuple[float, Callable[[random.Random], None]]] = [
            (70, self.generated), (14, self.mutated), (4, self.stream), (4, self.left), (1, self.empty),
            (2, self.odd_calls), (0.4, self.oversized), (4, self.socket_garbage), (0.3, self.slow),
        ]  # fmt: skip
        rng.choices([a for _, a in attacks], [w for w, _ in attacks])[0](rng)

    # -- attacks -----------------------------------------------------------------------------------------------------

    def generated(self, rng: random.Random) -> None:
        """A message with no, few, many or only boundary values."""
        method = self.session.method(rng)
        self.call(method, [self._raw(rng, method)])

    def mutated(self, rng: random.Random) -> None:
        """The bytes of a sensible message, damaged."""
        method = self.session.method(rng)
        other = self._raw(rng, self.session.method(rng), 0.0)
        self.call(method, [fuzz_bytes.mutate(rng, self._raw(rng, method, 0.0), other)])

    def stream(self, rng: random.Random) -> None:
        """StoreMany with garbage among the items."""
        method = SERVICES[0].methods_by_name["StoreMany"]
        items = [self._raw(rng, method) for _ in range(rng.choice((0, 1, 5, 80)))]
        for at in range(len(items)):
            if rng.random() < 0.2:
                items[at] = fuzz_bytes.mutate(rng, items[at][:2_000], items[0])
        answers = self.call(method, items)
        if answers is None:
            return
        wanted = sum(_items(item) for item in items)
        if [one.index for answer in answers for one in (answer, *answer.more)] != list(range(wanted)):
            self.judge.find("StoreMany", f"{wanted} items in {len(items)} messages, {len(answers)} messages of answers")

    def left(self, rng: random.Random) -> None:
        """A caller that goes away: a deadline too short, a cancellation, a stream left open."""
        method = self.session.method(rng)
        raws = [self._raw(rng, method, 0.05) for _ in range(5 if method.client_streaming else 1)]
        if rng.random() < 0.4:
            self.call(method, raws, timeout=rng.choice((0.0, 0.001, 0.01)), left=True)
            return
        ready = threading.Event()

        def sending() -> Iterator[bytes]:
            yield from raws
            ready.wait(2)

        open_ended = method.client_streaming and rng.random() < 0.7
        call = self._start(method, sending() if open_ended else iter(raws), CALL_SECONDS)
        time.sleep(rng.choice((0, 0.0005, 0.003, 0.05)))
        call.cancel()
        ready.set()
        self.judge.count("left " + method.name, "CANCELLED")

    def empty(self, rng: random.Random) -> None:
        """No byte at all, or none but unknown fields."""
        method = self.session.method(rng)
        self.call(method, [rng.choice((b"", fuzz_bytes.unknown_fields(rng), fuzz_bytes.too_deep(rng)))])

    def odd_calls(self, rng: random.Random) -> None:
        """Methods that do not exist, and existing ones with no message or too many."""
        raw = self._raw(rng, self.session.method(rng), 0.0)
        name = rng.choice(
            ("/memxd.v1.MemoryService/", "/memxd.v1.Nothing/Store", "/memxd.v1.MemoryService/store", f"/{CANARY}/x")
        )
        method = self.session.method(rng)
        which = rng.randrange(3)
        if which == 0:
            call = self.channel.unary_unary(name)
            self._finish("unknown method", call.future(raw, timeout=CALL_SECONDS), None, raw, unknown=True)
            return
        path = f"/{method.containing_service.full_name}/{method.name}"
        messages = iter([] if which == 1 else [raw, raw, raw])
        call = self.channel.stream_stream(path)(messages, timeout=CALL_SECONDS)
        try:
            for _ in call:
                pass
            self.judge.count("wrong number of messages", "OK")
        except grpc.RpcError as error:
            self.judge.refusal("wrong number of messages", error, raw, unknown=True)

    def oversized(self, rng: random.Random) -> None:
        """Around and beyond the message limit."""
        method = self.session.method(rng)
        size = rng.choice((4 * 1024 * 1024 - 20, 4 * 1024 * 1024 + 1, 9_000_000))
        raw = b"\xa2\x06" + fuzz_bytes.varint(size) + bytes(size)
        self.call(method, [raw])

    def socket_garbage(self, rng: random.Random) -> None:
        """Bytes on the socket that are no HTTP/2, or an HTTP/2 that lies."""
        method = self.session.method(rng)
        path = f"/{method.containing_service.full_name}/{method.name}".encode()
        for _ in range(rng.choice((1, 1, 10))):
            fuzz_bytes.talk(self.session.daemon.socket, fuzz_bytes.conversation(rng, path), 0, rng.choice((0, 0.02)))
        self.judge.count("socket", "garbage")

    def slow(self, rng: random.Random) -> None:
        """A caller that takes its time with every byte or item."""
        fuzz_bytes.talk(self.session.daemon.socket, [bytes([b]) for b in fuzz_bytes.PREFACE], 0.03, 0.1)
        method = SERVICES[0].methods_by_name["StoreMany"]
        items = [self._raw(rng, method, 0.0) for _ in range(4)]

        def sending() -> Iterator[bytes]:
            for item in items:
                time.sleep(0.3)
                yield item

        self._finish("slow StoreMany", self._start(method, sending(), CALL_SECONDS), method, b"".join(items))

    # -- sending -----------------------------------------------------------------------------------------------------

    def _raw(self, rng: random.Random, method: d.MethodDescriptor, wild: float | None = None) -> bytes:
        share = rng.choice((0.0, 0.0, 0.03, 0.1, 0.3, 1.0)) if wild is None else wild
        raw = Generator(rng, self.session.pool).request(method.input_type, share).SerializeToString()
        return raw + fuzz_bytes.unknown_fields(rng) if rng.random() < 0.05 else raw

    def call(
        self, method: d.MethodDescriptor, raws: list[bytes], timeout: float = CALL_SECONDS, left: bool = False
    ) -> list[Any] | None:
        """Send, judge, learn; the answers of a call that succeeded."""
        longest = max(raws, key=len, default=b"")
        return self._finish(method.name, self._start(method, iter(raws), timeout), method, longest, left=left)

    def _start(self, method: d.MethodDescriptor, raws: Iterator[bytes], timeout: float) -> Any:
        path = f"/{method.containing_service.full_name}/{method.name}"
        if method.client_streaming:
            return self.channel.stream_stream(path)(raws, timeout=timeout)
        if method.server_streaming:
            return self.channel.unary_stream(path)(next(raws), timeout=timeout)
        return self.channel.unary_unary(path).future(next(raws), timeout=timeout)

    def _finish(
        self, what: str, call: Any, method: d.MethodDescriptor | None, raw: bytes, **flags: bool
    ) -> list[Any] | None:
        try:
            replies = [call.result()] if hasattr(call, "result") and not _is_stream(method) else list(call)
        except grpc.RpcError as error:
            self.judge.refusal(what, error, raw, **flags)
            return None
        if method is None:
            self.judge.find(what, "was answered", raw)
            return None
        kind = message_factory.GetMessageClass(method.output_type)
        answers = [self.judge.answer(what, kind, reply, raw) for reply in replies]
        for answer in answers:
            if answer is not None:
                self.session.pool.learn(answer)
        return answers


def _is_stream(method: d.MethodDescriptor | None) -> bool:
    return method is not None and method.server_streaming


def _items(raw: bytes) -> int:
    """How many answers a message of StoreMany must get."""
    try:
        return 1 + len(memory_service_pb2.StoreManyRequest.FromString(raw).more)
    except DecodeError:
        return 1

"""Index files that are damaged while the daemon is away: it starts, answers as before, and finds nothing wrong.

Owns the store that is damaged over and over, what it must answer, and the kinds of damage. A round is a pure product of
its seed, but for the times at which the daemon writes. Used by ``fuzz_run.py`` and by a test.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import grpc

from fuzz_daemon import Daemon
from memxd.v1 import admin_service_pb2, admin_service_pb2_grpc, memory_pb2, memory_service_pb2_grpc, search_pb2
from memxd.v1 import memory_service_pb2 as pb

#: Memories: with ``graph`` enough of them for a graph of vectors.
FEW, MANY = 80, 9_000
SECONDS = 60.0
WORDS = (
    "amber", "birch", "cobalt", "dune", "ember", "fjord", "grove", "harbour", "island", "juniper", "kelp", "lagoon",
)  # fmt: skip
BAD_WORDS = ('"a thread died"', "Traceback", "internal error", "an exception in a place")


class World:
    """A daemon, its sound files, and its answers."""

    def __init__(self, folder: Path, *, graph: bool = False) -> None:
        self.daemon = Daemon(folder)
        self._sound = folder / "sound"
        self._size = MANY if graph else FEW
        self.daemon.start()
        self._fill(graph)
        self.answers = self._ask()
        self._end()
        shutil.copytree(self.daemon.data_dir, self._sound)
        index = self._sound / "index"
        self.files = sorted(str(p.relative_to(index)) for p in index.rglob("*") if p.is_file() and p.stat().st_size)

    def _fill(self, graph: bool) -> None:
        rng = random.Random(1)
        with self.daemon.channel() as channel:
            rpc = memory_service_pb2_grpc.MemoryServiceStub(channel)
            new = (
                pb.NewMemory(
                    content=f"note {n}: " + " ".join(rng.choices(WORDS, k=6)), tags=[rng.choice(WORDS)], type=n % 5 + 1,
                    importance=n % 10 / 10,
                )
                for n in range(self._size)
            )  # fmt: skip
            scopes = [memory_pb2.Scope(user_id=f"user {n % 3 if n < FEW else 0}") for n in range(self._size)]
            requests = (pb.StoreManyRequest(scope=s, memory=m) for s, m in zip(scopes, new, strict=True))
            assert sum(1 for _ in rpc.StoreMany(requests, timeout=SECONDS * 3))
            upkeep = admin_service_pb2_grpc.AdminServiceStub(channel)
            end = time.monotonic() + SECONDS * 3
            while graph and not list((self.daemon.data_dir / "index" / "vector").glob("*graph*")):
                assert time.monotonic() < end, "no graph was built"
                time.sleep(0.2)
            upkeep.Flush(admin_service_pb2.FlushRequest(), timeout=SECONDS)

    def _ask(self) -> list[object]:
        """What the store answers, exactly, by both legs and by filters."""
        out: list[object] = []
        with self.daemon.channel() as channel:
            rpc = memory_service_pb2_grpc.MemoryServiceStub(channel)
            for n in range(3):
                scope = memory_pb2.Scope(user_id=f"user {n}")
                for mode in (
                    search_pb2.SEARCH_MODE_KEYWORD,
                    search_pb2.SEARCH_MODE_VECTOR,
                    search_pb2.SEARCH_MODE_HYBRID,
                ):
                    question = pb.SearchRequest(
                        scope=scope, query=f"{WORDS[n]} {WORDS[-n - 1]}", mode=mode, exact=True, k=20,
                        record_retrieval=False,
                        ranking=search_pb2.Ranking(dedup=search_pb2.DEDUP_MODE_OFF, reject=False),
                    )  # fmt: skip
                    answer = rpc.Search(question, timeout=SECONDS)
                    out.append([(hit.memory.id, round(hit.relevance, 9)) for hit in answer.hits])
                    out.append([cause.cause for cause in answer.degraded])
                wanted = memory_pb2.Filter(tags_any=[WORDS[n]], importance_min=0.3)
                out.append(rpc.Count(pb.CountRequest(scope=scope, filter=wanted), timeout=SECONDS).count)
        return out

    def _end(self) -> None:
        code = self.daemon.end()
        assert code == 0, f"exit code {code}:\n{self.daemon.log[-3_000:]}"

    def round(self, seed: int) -> str | None:
        """Damage some files, start, ask, look, stop; what went wrong, or None."""
        rng = random.Random(f"index {seed}")
        shutil.rmtree(self.daemon.data_dir)
        shutil.copytree(self._sound, self.daemon.data_dir)
        done = [f"{name}: {_damage(rng, self.daemon.data_dir / 'index' / name, self._sound / 'index')}"
                for name in rng.sample(self.files, min(len(self.files), rng.choice((1, 1, 2, 3))))]  # fmt: skip
        self.daemon.log_file.write_text("")
        try:
            self.daemon.start()
            problem = self._problem()
            self._end()
        except (AssertionError, grpc.RpcError) as error:
            problem = str(error)[:2_000]
        finally:
            self.daemon.close()
        said = [word for word in BAD_WORDS if word in self.daemon.log]
        if problem is None and said:
            problem = f"the log says {said}:\n{self.daemon.log[-3_000:]}"
        return None if problem is None else f"seed {seed}, {'; '.join(done)}: {problem}"

    def _problem(self) -> str | None:
        """Whether it answers as before, and finds nothing wrong with itself, once what is being rebuilt is there."""
        with self.daemon.channel() as channel:
            upkeep = admin_service_pb2_grpc.AdminServiceStub(channel)
            end = time.monotonic() + SECONDS
            while any(i.state == 2 for i in upkeep.Status(admin_service_pb2.StatusRequest(), timeout=SECONDS).indexes):
                if time.monotonic() > end:
                    return "an index is still being rebuilt"
                time.sleep(0.05)
            if self._ask() != self.answers:
                return "it answers differently"
            [*_, last] = upkeep.Verify(admin_service_pb2.VerifyRequest(), timeout=SECONDS)
            return f"verify finds {last.problems[0].message}" if last.problems else None


def _damage(rng: random.Random, path: Path, sound: Path) -> str:
    """Damage one file; what was done to it."""
    data = bytearray(path.read_bytes())
    which = rng.randrange(8)
    if which == 0:
        path.unlink()
        return "removed"
    if which == 1:
        del data[rng.randrange(len(data)) :]
    elif which == 2:
        data += rng.randbytes(rng.choice((1, 8, 4_096)))
    elif which == 3:
        begin = rng.randrange(len(data))
        end = min(len(data), begin + rng.choice((8, 512, 4_096)))
        data[begin:end] = bytes(end - begin)
    elif which == 4:
        data[:] = rng.randbytes(len(data))
    elif which == 5:
        other = rng.choice([p for p in sound.rglob("*") if p.is_file()])
        data[:] = other.read_bytes()
    else:
        for _ in range(rng.choice((1, 1, 5, 100))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return ("", "cut", "longer", "zeros", "noise", "another file", "bits", "bits")[which]


def rounds(world: World, seed: int, *, count: int = 0, seconds: float = 0.0) -> Iterator[str]:
    """Rounds until ``count`` or ``seconds`` are over (0 = no bound); what went wrong in each that failed."""
    end, number = time.monotonic() + seconds, 0
    while (not count or number < count) and (not seconds or time.monotonic() < end):
        problem = world.round(seed + number)
        number += 1
        if problem is not None:
            yield problem

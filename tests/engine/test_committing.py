"""Many memories in one transaction: each is answered as if it had come alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memxd._fast import load_kernels
from memxd.embed import EmbedSettings, open_embedder
from memxd.engine import Engine, uuid7_factory
from memxd.errors import MemoryNotFoundError, MemxdError, RequestIdReusedError
from memxd.model import NO_FILTER, Clock, Filter, MemoryType, NewMemory, Ranking, Scope, SearchQuery, StoreAnswer

A, B = Scope("a"), Scope("b")
Item = tuple[Scope, NewMemory, str]


class Whole:
    """A stream that arrives all at once."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items

    def groups(self, size: int) -> Iterator[list[Item]]:
        assert len(self.items) <= size
        yield list(self.items)


def stored(engine: Engine, items: Sequence[Item]) -> list[StoreAnswer | MemxdError]:
    return list(engine.store_many(Whole(items)))


def plain(answers: Sequence[StoreAnswer | MemxdError]) -> list[StoreAnswer]:
    assert all(isinstance(answer, StoreAnswer) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, StoreAnswer)]


def contents(engine: Engine, scope: Scope = A) -> list[str]:
    return [memory.content for memory in engine.list(scope, NO_FILTER, page_size=200).memories][::-1]


def test_a_batch_answers_as_single_stores_do(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    news = [
        NewMemory(f"memory number {n}", MemoryType(1 + n % 5), ("t", f"t{n % 3}"), {"n": n}, n / 20, source="s")
        for n in range(20)
    ]
    together = plain(stored(engine, [(A, new, f"r{n}") for n, new in enumerate(news)]))
    alone = [engine.store(B, new, f"r{n}") for n, new in enumerate(news)]
    for one, other in zip(together, alone, strict=True):
        mine, yours = engine.get(A, one.memory.id)[0], engine.get(B, other.memory.id)[0]
        same = ("content", "type", "tags", "metadata", "importance", "source", "created_at", "vector_pending", "state")
        assert [getattr(mine, name) for name in same] == [getattr(yours, name) for name in same]
        assert mine == one.memory
    revisions = [answer.revision for answer in together]
    assert revisions == sorted(set(revisions))
    assert [answer.memory.id for answer in together] == sorted(answer.memory.id for answer in together)
    for wanted in (Filter(tags_any=frozenset({"t1"})), Filter(metadata={"n": 7}), Filter(importance_min=0.5)):
        assert engine.count(A, wanted)[0] == engine.count(B, wanted)[0] > 0


def test_what_a_batch_stored_is_found_by_the_next_search(engine: Engine) -> None:
    plain(stored(engine, [(A, NewMemory(f"the {word} harbour"), "") for word in ("green", "violet", "amber")]))
    found = engine.search(SearchQuery(A, "violet harbour", k=1, ranking=Ranking(reject=False)))
    assert found.hits[0].memory.content == "the violet harbour"


def test_a_refused_item_in_the_middle_refuses_only_itself(engine: Engine) -> None:
    nowhere = "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"
    items = [(A, NewMemory(f"note {n}", supersedes=(nowhere,) if n == 3 else ()), "") for n in range(7)]
    answers = stored(engine, items)
    assert isinstance(answers[3], MemoryNotFoundError)
    plain(answers[:3] + answers[4:])
    assert contents(engine) == [f"note {n}" for n in range(7) if n != 3]


def test_a_repetition_within_a_batch_is_merged_into_its_first(engine: Engine) -> None:
    items = [
        (A, NewMemory("first"), ""), (A, NewMemory("same", tags=("x",)), ""), (A, NewMemory("other"), ""),
        (A, NewMemory("same", tags=("y",)), ""), (B, NewMemory("same"), ""), (A, NewMemory("last"), ""),
    ]  # fmt: skip
    answers = plain(stored(engine, items))
    assert [answer.deduplicated for answer in answers] == [False, False, False, True, False, False]
    assert answers[3].memory.id == answers[1].memory.id
    assert answers[3].memory.tags == ("x", "y")
    assert contents(engine) == ["first", "same", "other", "last"]
    assert contents(engine, B) == ["same"]


def test_what_the_scope_holds_already_is_not_stored_again(engine: Engine) -> None:
    known = engine.store(A, NewMemory("known")).memory.id
    other = engine.store(A, NewMemory("differs", source="elsewhere")).memory.id
    answers = plain(stored(engine, [(A, NewMemory(text), "") for text in ("new", "known", "differs", "newer")]))
    assert [answer.deduplicated for answer in answers] == [False, True, False, False]
    assert answers[1].memory.id == known
    assert answers[2].memory.id != other  # equal content of another source is another memory
    assert contents(engine) == ["known", "differs", "new", "differs", "newer"]


def test_allowed_duplicates_stay_apart(engine: Engine) -> None:
    answers = plain(stored(engine, [(A, NewMemory("again", allow_duplicate=True), "") for _ in range(3)]))
    assert len({answer.memory.id for answer in answers}) == 3


def test_a_batch_that_is_sent_again_is_answered_as_before(engine: Engine) -> None:
    items = [(A, NewMemory(f"once {n}", allow_duplicate=True), f"id-{n}") for n in range(6)]
    first = plain(stored(engine, items[:4]))
    again = plain(stored(engine, items))
    assert again[:4] == first
    assert contents(engine) == [f"once {n}" for n in range(6)]


def test_a_request_id_counts_within_its_batch(engine: Engine) -> None:
    answers = stored(
        engine,
        [
            (A, NewMemory("one", allow_duplicate=True), "id"), (A, NewMemory("one", allow_duplicate=True), "id"),
            (A, NewMemory("two"), "id"), (B, NewMemory("three"), "id"),
        ],
    )  # fmt: skip
    assert answers[0] == answers[1]
    assert isinstance(answers[2], RequestIdReusedError)
    assert contents(engine) == ["one"]
    assert contents(engine, B) == ["three"]


def test_a_batch_that_sqlite_refuses_is_stored_one_by_one(tmp_path: Path, clock: Clock) -> None:
    make, given = uuid7_factory(), []

    def ids(now: int) -> str:
        """The fifth is the first once more."""
        given.append(given[0] if len(given) == 4 else make(now))
        return given[-1]

    embedder = open_embedder(EmbedSettings(backend="hashing"), tmp_path)
    engine = Engine.open(tmp_path / "data", embedder=embedder, kernels=load_kernels(), clock=clock, ids=ids)
    try:
        plain(stored(engine, [(A, NewMemory(f"note {n}"), f"r{n}") for n in range(8)]))
        assert contents(engine) == [f"note {n}" for n in range(8)]
        assert engine.count(A, NO_FILTER)[0] == 8
    finally:
        engine.close()
        embedder.close()


_IMPORT = """
import sys
from pathlib import Path
from memxd._fast import load_kernels
from memxd.embed import EmbedSettings, open_embedder
from memxd.engine import Engine, system_clock, uuid7_factory
from memxd.model import NewMemory, Scope

folder = Path(sys.argv[1])
embedder = open_embedder(EmbedSettings(backend="hashing"), folder)
made = {"embedder": embedder, "kernels": load_kernels(), "clock": system_clock, "ids": uuid7_factory()}
engine = Engine.open(folder / "data", **made)
for n, answer in enumerate(engine.store_many((Scope("a"), NewMemory(f"line {n}"), f"r{n}") for n in range(10**6))):
    print(answer.memory.id, flush=True)
"""


def test_what_a_killed_import_acknowledged_is_there(tmp_path: Path, open_engine: Callable[[], Engine]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _IMPORT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(300)]
        process.kill()
        seen += [line.strip() for line in process.stdout if line.endswith("\n")]
    engine = open_engine()  # the same directory
    total = engine.count(A, NO_FILTER)[0]
    assert total >= len(seen)
    for n in (0, 150, len(seen) - 1):
        assert engine.get(A, seen[n])[0].content == f"line {n}"
    again = plain(stored(engine, [(A, NewMemory(f"line {n}"), f"r{n}") for n in range(280, 300)]))
    assert [answer.memory.id for answer in again] == seen[280:300]
    assert engine.count(A, NO_FILTER)[0] == total
    found = engine.search(SearchQuery(A, "line 299", k=50, ranking=Ranking(reject=False)))
    assert seen[299] in {hit.memory.id for hit in found.hits}

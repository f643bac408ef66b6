"""Bad input: every limit of the contract, at the bound and one beyond, in every RPC that has the field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

import requestkit
from casekit import NOBODY, Case, Refusal, assert_refused, fresh_scope, refused
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2
from requestkit import FILTERED, KINDS, NEW, SEARCHES, TEXTS, WRITES, Seed, make

NAN, INF = float("nan"), float("inf")
FIRST, LAST = -62_135_596_800, 253_402_300_799  # 0001-01-01 and the last second of 9999
#: A number outside every enum, and one that only a newer version could know.
UNKNOWN = (99, 2**31 - 1, -1)


def instant(seconds: int, nanos: int = 0) -> Timestamp:
    return Timestamp(seconds=seconds, nanos=nanos)


def struct(value: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(value)
    return made


def of_bytes(size: int) -> Struct:
    """Metadata whose JSON has exactly this size."""
    rest = size - len(json.dumps({"k": ""}, separators=(",", ":")))
    return struct({"k": "x" * rest})


def of_depth(levels: int) -> Struct:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return struct(value)


def of_lists(levels: int) -> Struct:
    """An object that counts as one level, and lists below it."""
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    return struct({"a": value})


@pytest.fixture(scope="module")
def untouched(hashing: Case) -> Seed:
    """For requests that change nothing, because they are refused."""
    return Seed.into(hashing, fresh_scope("limits"))


@pytest.fixture
def seed(hashing: Case) -> Seed:
    return Seed.into(hashing, fresh_scope("limits"))


def each(rpcs: tuple[str, ...], rows: list[tuple[dict[str, Any], str]]) -> Iterator[Any]:
    """(rpc, fields, the refused field or "" when it must be taken) with a readable id."""
    for rpc in rpcs:
        for fields, field in rows:
            name, value = next(iter(fields.items()))
            shown = f"{value!r}" if len(repr(value)) < 24 else f"#{len(repr(value))}"
            yield pytest.param(rpc, fields, field, id=f"{rpc}-{name}-{shown}-{'no' if field else 'ok'}")


def good(name: str, *values: Any) -> list[tuple[dict[str, Any], str]]:
    return [({name: value}, "") for value in values]


def bad(name: str, *values: Any, field: str = "") -> list[tuple[dict[str, Any], str]]:
    return [({name: value}, field or name.replace("__", ".")) for value in values]


SCOPE = [
    *good("scope__agent_id", "a" * 128, " " + "é" * 128 + "\t"),
    *bad("scope__agent_id", "a" * 129, "tab\tinside", "a\nb", "nul\0", "\x85b\x85c", "sep\u2028x"),
    *good("scope__user_id", "u" * 128, "名" * 128),
    *bad("scope__user_id", "名" * 129, "\x7fdel\x7fx", "c\x00d"),
]
CONTENT = [
    *good("memory__content", "x", "x" * 65_536, "🦊" * 65_536, " \n" + "x" * 65_536 + "\u200b\t", "e\u0301" * 65_536),
    *bad("memory__content", "x" * 65_537, "🦊" * 65_537, "e\u0301" * 65_537),
]
ATTRIBUTES = [
    *good("memory__tags", [f"t{n}" for n in range(32)], ["same"] * 40, ["t" * 64], ["猫" * 64], [" spaced "]),
    *bad("memory__tags", [f"t{n}" for n in range(33)], ["t" * 65], ["ok", ""], ["\u200b"], ["a\nb"]),
    *good("memory__metadata", of_bytes(16_384), of_depth(32), of_lists(32), struct({"": 1, "a.b$['\"]": None})),
    *bad("memory__metadata", of_bytes(16_385), of_depth(33), of_lists(33), struct({"n": NAN}), struct({"n": [-INF]})),
    *good("memory__importance", 0.0, 1.0, -0.0),
    *bad("memory__importance", -1e-9, 1.000001, NAN, INF, -INF),
    *good("memory__source", "", "s" * 256, "  " + "s" * 256),
    *bad("memory__source", "s" * 257, "a\nb"),
    *good("memory__event_at", instant(FIRST), instant(LAST, 999_999_999), instant(0), instant(-1, 1)),
    *bad("memory__event_at", instant(FIRST - 1), instant(LAST + 1), instant(0, -1), instant(0, 1_000_000_000)),
    *good("memory__valid_until", instant(LAST, 999_999_999), instant(FIRST)),
    *bad("memory__valid_until", instant(FIRST - 1), instant(LAST + 1), instant(2**62), instant(-(2**63))),
    *good("memory__type", *range(6)),
    *bad("memory__type", 6, *UNKNOWN),
]
PAIRS = [
    ({"memory__event_at": instant(100), "memory__valid_until": instant(100)}, "memory.valid_until"),
    ({"memory__event_at": instant(100), "memory__valid_until": instant(99, 999_999_000)}, "memory.valid_until"),
    ({"memory__event_at": instant(100), "memory__valid_until": instant(100, 1_000)}, ""),
]
OTHERS = [
    *bad("memory__supersedes", [NOBODY] * 33, ["nonsense"], [NOBODY, ""], [NOBODY[:-1]]),
    *bad("memory__vector", [1.0, NAN], [INF]),
]
REQUEST_ID = [
    *good("request_id", "", "r" * 64, "ключ-1"),
    *bad("request_id", "r" * 65, "a\nb", "   ", "\u200b", "a\u2028b"),
]
FILTER = [
    *good("filter__tags_any", [f"t{n}" for n in range(32)], ["%", "_", "' OR 1=1 --", '"']),
    *bad("filter__tags_any", [f"t{n}" for n in range(33)], ["ok", " "], ["t" * 65]),
    *bad("filter__tags_all", [f"t{n}" for n in range(33)], ["\u200b"], ["t" * 65]),
    *bad("filter__tags_none", [f"t{n}" for n in range(33)], ["\0"], ["t" * 65]),
    *good("filter__types", [1, 2, 3, 4, 5], [1, 1]),
    *bad("filter__types", [0], [1, 6], [99], [-1]),
    *good("filter__importance_min", 0.0, 1.0),
    *bad("filter__importance_min", -0.01, 1.01, NAN, INF),
    *good("filter__metadata", struct({f"k{n}": n for n in range(16)}), struct({"$.a": "'", "a.b": {"c": [1]}})),
    *bad("filter__metadata", struct({f"k{n}": n for n in range(17)}), of_bytes(16_385), struct({"n": NAN})),
    *good("filter__metadata", of_depth(32)),
    *good("filter__states", [1, 2, 3]),
    *bad("filter__states", [0], [4], [1, 99]),
    *good("filter__ids", [NOBODY], [f"0198c5f2-7c1e-7b3a-9d7e-{n:012x}" for n in range(1_000)], [NOBODY.upper()]),
    *bad("filter__ids", [f"0198c5f2-7c1e-7b3a-9d7e-{n:012x}" for n in range(1_001)], ["x"], [NOBODY, ""]),
    *good("filter__created", mem.TimeRange(start=instant(5), end=instant(6)), mem.TimeRange()),
    *bad("filter__created", mem.TimeRange(start=instant(5), end=instant(5)), field="filter.created.end"),
    *bad("filter__created", mem.TimeRange(start=instant(LAST + 1)), field="filter.created.start"),
    *bad("filter__event", mem.TimeRange(start=instant(5), end=instant(4)), field="filter.event.end"),
    *bad("filter__event", mem.TimeRange(end=instant(0, -5)), field="filter.event.end"),
]
AS_OF = [
    *good("as_of", instant(FIRST), instant(LAST)),
    *bad("as_of", instant(FIRST - 1), instant(LAST + 1), instant(1, 2_000_000_000)),
    ({"as_of": instant(1), "filter__states": [1]}, "as_of"),
]
SEARCH = [
    *good("query", "q", "q" * 2_000, "🦊" * 2_000, "\n" + "q" * 2_000 + "  "),
    *bad("query", "q" * 2_001, "🦊" * 2_001),
    *good("k", 1, 200),
    *bad("k", 0, 201, -1, 2**31 - 1, -(2**31)),
    *good("mode", 0, 1, 2, 3),
    *bad("mode", 4, *UNKNOWN),
    *good("min_relevance", 0.0, 1.0),
    *bad("min_relevance", -0.01, 1.01, NAN),
    *good("asked_at", instant(FIRST), instant(LAST)),
    *bad("asked_at", instant(FIRST - 1), instant(LAST + 1), instant(0, -1)),
    *good("time_zone", "", "Europe/Berlin", "UTC"),
    *bad("time_zone", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe/Berlin\0", "x" * 300, " "),
    *good("expand_links", 0, 3),
    *bad("expand_links", 4, -1),
    *bad("vector", [NAN], [1.0, INF]),
    *bad("model_id", "hashing-384-1"),
    *good("ranking__profile", 0, 1, 2),
    *bad("ranking__profile", 4, *UNKNOWN),
    *good("ranking__weights", search_pb2.FactorWeights(semantic=1_000.0, importance=0.0)),
    *bad("ranking__weights", search_pb2.FactorWeights(semantic=1_000.1), field="ranking.weights.semantic"),
    *bad("ranking__weights", search_pb2.FactorWeights(recency=-0.1), field="ranking.weights.recency"),
    *bad("ranking__weights", search_pb2.FactorWeights(frequency=NAN), field="ranking.weights.frequency"),
    *bad("ranking__weights", search_pb2.FactorWeights(importance=INF), field="ranking.weights.importance"),
    *bad("ranking__weights", search_pb2.FactorWeights(semantic=0, recency=0, frequency=0, importance=0)),
    *bad("ranking__alpha", 0.5),
    *good("ranking__half_life", Duration(seconds=1), Duration(seconds=36_525 * 86_400)),
    *bad("ranking__half_life", Duration(), Duration(nanos=999_999_000), Duration(seconds=36_525 * 86_400, nanos=1_000)),
    *bad("ranking__half_life", Duration(seconds=-1), Duration(seconds=1, nanos=-1), Duration(seconds=2**62)),
    *good("ranking__rrf_k", 1, 10_000),
    *bad("ranking__rrf_k", 0, 10_001, -60),
    *good("ranking__vector_weight", 0.0, 1_000.0),
    *bad("ranking__vector_weight", -1.0, 1_000.1, NAN),
    *bad("ranking__keyword_weight", -1.0, 1_000.1, INF),
    ({"ranking__vector_weight": 0.0, "ranking__keyword_weight": 0.0}, "ranking.vector_weight"),
    *bad("ranking__dedup", 5, *UNKNOWN),
    *good("ranking__tau", -1.0, 1.0),
    *bad("ranking__tau", -1.1, 1.1, NAN),
    ({"ranking__profile": 3, "ranking__alpha": 0.0}, ""),
    ({"ranking__profile": 3, "ranking__alpha": 1.0}, ""),
    ({"ranking__profile": 3, "ranking__alpha": 1.01}, "ranking.alpha"),
    ({"ranking__profile": 3, "ranking__alpha": NAN}, "ranking.alpha"),
    ({"ranking__profile": 3, "mode": 3}, "mode"),
]
PAGED = [*good("page_size", 1, 500), *bad("page_size", 0, 501, -1), *bad("page_token", "x", " ", "AAAAAAAA", "é" * 999)]
LINK = [
    *good("type", 1, 2, 3, 4, 6, 7),
    *bad("type", 0, 8, *UNKNOWN),
    *good("strength", 0.0, 1.0),
    *bad("strength", -0.01, 1.01, NAN, INF),
    *good("metadata", of_bytes(16_384), of_depth(32)),
    *bad("metadata", of_bytes(16_385), of_depth(33), struct({"n": NAN})),
    ({"type": 5, "bidirectional": True}, "bidirectional"),
    *bad("source_id", "", "x", NOBODY + "0", "{" + NOBODY + "}"),
    *bad("target_id", "", "x", NOBODY.replace("-", "")),
]
WALK = [
    *good("max_depth", 1, 6),
    *bad("max_depth", 0, 7, -1),
    *good("max_nodes", 1, 500),
    *bad("max_nodes", 0, 501, -1),
    *bad("start_id", "", "x", "' OR 1=1"),
]
EDGES = [
    *good("types", [1, 2, 3, 4, 5, 6, 7], []),
    *bad("types", [0], [8], [1, 99]),
    *good("strength_min", 0.0, 1.0),
    *bad("strength_min", -0.01, 1.01, NAN),
    *good("direction", 0, 1, 2, 3),
    *bad("direction", 4, *UNKNOWN),
]

ROWS = [
    *each(tuple(KINDS), SCOPE),
    *each(TEXTS, CONTENT + ATTRIBUTES + PAIRS),
    *each(NEW, OTHERS + bad("memory__model_id", "hashing-384-1")),
    *each(tuple(r for r in WRITES), REQUEST_ID),
    *each(FILTERED, FILTER),
    *each(("List", "Count", *SEARCHES), AS_OF),
    *each(SEARCHES, SEARCH),
    *each(("List", "ListLinks"), PAGED),
    *each(("List",), good("order", *range(7)) + bad("order", 7, *UNKNOWN)),
    *each(("CreateLink",), LINK),
    *each(("Traverse",), WALK),
    *each(("Traverse", "ListLinks"), EDGES),
    *each(("ListLinks",), bad("memory_id", "", "x", NOBODY[:-1] + "g")),
    *each(("Get", "Delete", "DeleteLink", "Update"), bad("id", "", "x", NOBODY[:-1], NOBODY + "\0", "٠" * 36)),
    *each(("Update",), bad("memory__state", 0, 2, 4, 99) + good("memory__state", 1)),
]


@pytest.mark.parametrize(("rpc", "fields", "field"), ROWS)
def test_a_limit_holds_at_its_bound_and_refuses_one_beyond(
    hashing: Case, request: pytest.FixtureRequest, rpc: str, fields: dict[str, Any], field: str
) -> None:
    seed = request.getfixturevalue("untouched" if field else "seed")
    answer = hashing.call(rpc, make(rpc, seed, **fields))
    if field:
        refusal = assert_refused(answer, field)
        assert refusal.code.name == "INVALID_ARGUMENT"
        assert refusal.fields, "BadRequest names the field"
        assert refusal.metadata.get("field") == refusal.field
        return
    if isinstance(answer, Refusal):  # another scope than the seed's: the limit was not what refused it
        assert answer.reason in ("MEMORY_NOT_FOUND", "LINK_NOT_FOUND"), answer
        assert next(iter(fields)).startswith("scope__"), answer


def test_a_refused_write_leaves_nothing_behind(hashing: Case, seed: Seed) -> None:
    before = hashing.memory.List(pb.ListRequest(scope=seed.scope), timeout=20)
    for rpc, fields in (
        ("Store", {"memory__tags": ["t" * 65]}),
        ("StoreMany", {"memory__importance": 2.0}),
        ("Update", {"memory__content": "other", "memory__tags": ["t" * 65]}),
        ("CreateLink", {"strength": 2.0}),
        ("DeleteMany", {"dry_run": False, "filter__types": [99]}),
        ("Delete", {"request_id": "r" * 65}),
        ("DeleteLink", {"request_id": "r" * 65}),
    ):
        assert_refused(hashing.call(rpc, make(rpc, seed, **fields)), "")
    after = hashing.memory.List(pb.ListRequest(scope=seed.scope), timeout=20)
    assert after.memories == before.memories
    links = hashing.memory.ListLinks(pb.ListLinksRequest(scope=seed.scope, memory_id=seed.first), timeout=20)
    assert [link.id for link in links.links] == [seed.link]


def test_an_update_needs_a_mask_of_fields_that_may_change(hashing: Case, seed: Seed) -> None:
    def masked(*paths: str) -> Any:
        request = pb.UpdateRequest(scope=seed.scope, id=seed.first, memory=pb.MemoryPatch(content="new"))
        request.update_mask.paths.extend(paths)
        return hashing.call("Update", request)

    assert_refused(masked(), "update_mask")
    for path in ("id", "created_at", "revision", "*", "", "memory.content", "Content", "access_count", "x" * 5_000):
        refusal = assert_refused(masked("content", path), "")
        assert refusal.field == "update_mask.paths[1]"
    assert hashing.memory.Get(pb.GetRequest(scope=seed.scope, id=seed.first), timeout=20).memory.content != "new"


def test_fields_outside_the_mask_are_not_read(hashing: Case, seed: Seed) -> None:
    request = requestkit.update(
        seed, "importance", importance=1.0, content="x" * 70_000, type=99, tags=[""], source="a\nb", state=77
    )
    assert hashing.call("Update", request).memory.importance == 1.0


def test_a_vector_must_be_of_the_model_and_its_dimension(hashing: Case, seed: Seed) -> None:
    model = hashing.admin.Status(admin_pb.StatusRequest(), timeout=20).model
    right = [1.0] + [0.0] * (model.dimension - 1)
    for rpc, field, prefix in (
        ("Store", "memory.vector", "memory__"),
        ("StoreMany", "memory.vector", "memory__"),
        ("Search", "vector", ""),
        ("SearchMany", "vector", ""),
    ):

        def call(vector: list[float], model_id: str, rpc: str = rpc, prefix: str = prefix) -> Any:
            return hashing.call(rpc, make(rpc, seed, **{f"{prefix}vector": vector, f"{prefix}model_id": model_id}))

        assert not isinstance(call(right, model.id), Refusal)
        assert_refused(call(right[:-1], model.id), field)
        assert_refused(call([*right, 0.0], model.id), field)
        assert_refused(call([0.0] * model.dimension, model.id), field)
        for other in ("", "another-model"):
            refusal = assert_refused(call(right, other), "", "MODEL_MISMATCH")
            assert refusal.code.name == "FAILED_PRECONDITION"
            assert refusal.metadata["model_id"] == model.id


@pytest.mark.parametrize("count", [0, 33])
def test_search_many_takes_1_to_32_searches(hashing: Case, seed: Seed, count: int) -> None:
    one = pb.SearchRequest(scope=seed.scope, query="tea")
    whole = hashing.memory.SearchMany(pb.SearchManyRequest(searches=[one] * 32), timeout=30)
    assert len(whole.results) == 32
    refusal = refused(lambda: hashing.memory.SearchMany(pb.SearchManyRequest(searches=[one] * count), timeout=30))
    assert refusal.field == "searches"


def test_status_and_rebuild_have_limits_too(hashing: Case) -> None:
    for right in (0, 1_000):
        assert not isinstance(hashing.call("Status", admin_pb.StatusRequest(max_scopes=right)), Refusal)
    for wrong in (-1, 1_001):
        assert_refused(hashing.call("Status", admin_pb.StatusRequest(max_scopes=wrong)), "max_scopes")
    for wrong in (4, *UNKNOWN):
        assert_refused(hashing.call("Rebuild", admin_pb.RebuildRequest(kind=wrong)), "kind")  # type: ignore[arg-type]


def test_a_self_link_is_refused(hashing: Case, seed: Seed) -> None:
    for spelled in (seed.first, seed.first.upper()):
        answer = hashing.call("CreateLink", make("CreateLink", seed, target_id=spelled))
        assert_refused(answer, "target_id")


def test_the_error_names_the_element_as_the_caller_counted(hashing: Case, seed: Seed) -> None:
    for rpc in NEW:
        answer = hashing.call(rpc, make(rpc, seed, memory__tags=["z", "y", " ", "a"]))
        assert assert_refused(answer, "memory.tags").field == "memory.tags[2]"
    for rpc in FILTERED:
        for name in ("tags_any", "tags_all", "tags_none"):
            answer = hashing.call(rpc, make(rpc, seed, **{f"filter__{name}": ["z", "y", " ", "a"]}))
            assert assert_refused(answer, f"filter.{name}").field in (f"filter.{name}", f"filter.{name}[2]")
        answer = hashing.call(rpc, make(rpc, seed, filter__ids=[NOBODY, seed.first, "wrong"]))
        assert assert_refused(answer, "filter.ids").field in ("filter.ids", "filter.ids[2]")


def test_nesting_beyond_what_protobuf_reads_is_refused_with_a_reason(hashing: Case, seed: Seed) -> None:
    for rpc, fields in (
        ("Search", {"filter__metadata": of_depth(60)}),
        ("SearchMany", {"filter__metadata": of_depth(60)}),
        ("Store", {"memory__metadata": of_depth(60)}),
        ("StoreMany", {"memory__metadata": of_depth(60)}),
        ("CreateLink", {"metadata": of_depth(60)}),
        ("Update", {"memory__metadata": of_depth(60)}),
    ):
        assert_refused(hashing.call(rpc, make(rpc, seed, **fields)), "")


def test_bytes_that_are_no_message_are_refused_with_a_reason_in_every_rpc(hashing: Case) -> None:
    for rpc in KINDS:
        stream = rpc == "StoreMany"
        make_stub = hashing.daemon.channel.stream_stream if stream else hashing.daemon.channel.unary_unary
        stub = make_stub(f"/memxd.v1.MemoryService/{rpc}", None, None)
        if stream:
            answers = [pb.StoreManyResponse.FromString(a) for a in stub(iter([b"\xff\xff", b""]), timeout=20)]
            assert [a.error.reason for a in answers] == ["INVALID_ARGUMENT"] * 2
            continue
        refusal = refused(lambda stub=stub: stub(b"\xff\xff\xff", timeout=20))
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")

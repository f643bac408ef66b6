"""SEMANTICS "Sizes", "Determinism" and "Errors"."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

import casekit
from featurekit import NOBODY, World, ask, fresh_scope
from memxd.client import Client, Item, Question, rank, where
from memxd.errors import InvalidArgumentError
from memxd.model import IndexKind, Limits, Memory, SearchAnswer, StoreAnswer
from memxd.v1 import memory_pb2, search_pb2
from memxd.v1 import memory_service_pb2 as pb

LIMIT = 3_670_016  # 3.5 MiB


def scope_of(client: Client) -> memory_pb2.Scope:
    scope = client.store("a scope needs a memory", source="scope").memory.scope
    return memory_pb2.Scope(agent_id=scope.agent_id, user_id=scope.user_id)


@pytest.fixture
def large(client: Client) -> Client:
    """80 memories of 64 KiB: more than one answer may hold."""
    for n in range(80):
        client.store(f"alpha beta {n} " + "x" * 65_000, tags=["large"])
    return client


# -- sizes ---------------------------------------------------------------------------------------------------------


def test_sizes_a_list_shortens_its_page(large: Client, hashing_world: World) -> None:
    """SEMANTICS Sizes: answers stop at 3.5 MiB: List gives a shorter page and the token goes on behind it."""
    stub = hashing_world.started[0].memory
    scope, seen, token, pages = scope_of(large), [], "", 0
    while True:
        answer = stub.List(pb.ListRequest(scope=scope, page_size=500, page_token=token))
        assert answer.ByteSize() <= LIMIT
        assert not any(m.content_truncated for m in answer.memories)
        seen.extend(m.id for m in answer.memories)
        pages += 1
        if not (token := answer.next_page_token):
            break
    assert pages >= 2
    assert len(seen) == len(set(seen)) == 81


def test_sizes_searches_keep_ids_and_scores_and_cut_content(large: Client, hashing_world: World) -> None:
    """SEMANTICS Sizes: Search and SearchMany truncate content with content_truncated; Get returns it whole."""
    stub = hashing_world.started[0].memory
    scope = scope_of(large)
    request = pb.SearchRequest(
        scope=scope, query="alpha beta", k=200, explain=True, ranking=search_pb2.Ranking(reject=False)
    )
    answer = stub.Search(request)
    assert answer.ByteSize() <= LIMIT
    assert len(answer.hits) == 81
    cut = [h for h in answer.hits if h.memory.content_truncated]
    assert cut
    assert all(h.memory.id and h.score and h.rank for h in answer.hits)
    assert len({len(h.memory.content) for h in cut}) == 1
    assert len(large.get(cut[0].memory.id).content) > 65_000
    many = stub.SearchMany(pb.SearchManyRequest(searches=[request] * 32), timeout=60)
    assert many.ByteSize() <= LIMIT
    assert [len(r.response.hits) for r in many.results] == [81] * 32


def test_sizes_pages_and_their_tokens(client: Client) -> None:
    """SEMANTICS Sizes: page_size absent = 50, at most 500; tokens bind scope, filter and order."""
    for _ in client.store_many([Item(f"note {n}", importance=n % 3 / 2, tags=["t"]) for n in range(60)]):
        pass
    page = client.list()
    assert len(page.memories) == 50
    token = page.next_page_token
    assert len(client.list(page_token=token).memories) == 10
    for size in (0, -1, 501):
        with pytest.raises(InvalidArgumentError) as caught:
            client.list(page_size=size)
        assert caught.value.violations[0].field == "page_size"
    other = fresh_scope(client)
    other.store("x")
    misuses: list[Any] = [
        lambda: client.list(page_token=token, order="created_at_asc"),
        lambda: client.list(page_token=token, filter=where(tags_any=["t"])),
        lambda: client.list(page_token=token, include_superseded=True),
        lambda: client.list(page_token=token, as_of=page.memories[0].created_at),
        lambda: other.list(page_token=token),
        lambda: client.list(page_token="nonsense"),
        lambda: client.list(page_token=token[:-2] + "AA"),
        lambda: client.list_links(page.memories[0].id, page_token=token),
    ]
    for misuse in misuses:
        with pytest.raises(InvalidArgumentError) as caught:
            misuse()
        assert caught.value.violations[0].field == "page_token"


@pytest.mark.parametrize("order", ["created_at", "event_at", "importance"])
def test_sizes_every_order_with_ties_by_id(client: Client, order: str) -> None:
    """SEMANTICS Sizes: orders by created_at, event_at and importance, each + id, both ways, page by page the same."""
    for n in range(30):
        client.store(f"note {n}", importance=n % 3 / 2, event_at=None if n % 5 == 0 else 1_000_000 * (n % 4))

    def key(m: Memory) -> tuple[float, str]:
        if order == "event_at":
            return (m.created_at if m.event_at is None else m.event_at), m.id
        return getattr(m, order), m.id

    for word, reverse in (("asc", False), ("desc", True)):
        found = list(client.iter_list(order=f"{order}_{word}", page_size=7))
        assert len(found) == 30
        assert [key(m) for m in found] == sorted(map(key, found), reverse=reverse)


# -- determinism ---------------------------------------------------------------------------------------------------


def plain(answer: SearchAnswer) -> list[tuple[Any, ...]]:
    return [(h.memory.id, h.score, h.relevance, h.explanation) for h in answer.hits]


def test_determinism_the_same_call_gives_the_same_answer(client: Client) -> None:
    """SEMANTICS Determinism: same snapshot, clock and counters: same answer, also asked by many at once and after
    every index was built anew; ties by age."""
    for n in range(40):
        client.store(f"alpha beta {'gamma' if n % 2 else ''}", allow_duplicate=True, source=str(n))
    options: dict[str, Any] = {"asked_at": 0, "k": 40, "ranking": rank(dedup="off")}
    first = plain(ask(client, "alpha gamma", **options))
    with ThreadPoolExecutor(8) as pool:
        assert all(plain(a) == first for a in pool.map(lambda _: ask(client, "alpha gamma", **options), range(24)))
    assert plain(ask(client, "alpha gamma", exact=True, **options)) == first
    for kind in IndexKind:
        for _ in client.rebuild(kind):
            pass
    assert plain(ask(client, "alpha gamma", **options)) == first
    equal = [id for id, score, *_ in first if score == first[0][1]]
    assert len(equal) == 20
    assert equal == sorted(equal)


def test_determinism_across_a_restart_and_both_kinds_of_kernels(world: World) -> None:
    """SEMANTICS Determinism: a restart changes nothing, nor does the choice of compiled or plain kernels."""
    answers = []
    for kernels in ("c", "py"):
        daemon = world.serve("--kernels", kernels)
        with world.client() as client:
            if not answers:
                for n in range(30):
                    client.store(f"alpha {'beta ' * (n % 4)} number {n}", importance=n / 30, tags=[str(n % 3)])
            assert client.status().engine.kernels == kernels
            profiles = ("balanced", "memx", "memex")
            answers.extend(plain(ask(client, "alpha beta", profile=p, asked_at=0, k=20)) for p in profiles)
        assert daemon.stop() == 0
    assert answers[:3] == answers[3:]


# -- errors --------------------------------------------------------------------------------------------------------


def test_errors_every_refusal_says_why_by_reason_and_code(client: Client, hashing_world: World) -> None:
    """SEMANTICS Errors: ErrorInfo (domain memxd) with a stable reason behind each kind of code."""
    stub = hashing_world.started[0].memory
    scope = scope_of(client)
    a, b = (client.store(t).memory for t in ("alpha", "beta"))
    client.create_link(a.id, b.id, "related")
    code = grpc.StatusCode
    mask = {"paths": ["importance"]}
    cases = [
        (stub.Store, pb.StoreRequest(scope=scope), code.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
        (stub.Get, pb.GetRequest(scope=scope, id=NOBODY), code.NOT_FOUND, "MEMORY_NOT_FOUND"),
        (stub.DeleteLink, pb.DeleteLinkRequest(scope=scope, id=NOBODY), code.NOT_FOUND, "LINK_NOT_FOUND"),
        (
            stub.Update,
            pb.UpdateRequest(scope=scope, id=a.id, update_mask=mask, expected_revision=1),
            code.ABORTED,
            "REVISION_MISMATCH",
        ),
        (
            stub.Update,
            pb.UpdateRequest(scope=scope, id=a.id, update_mask={"paths": ["content"]}, memory={"content": "beta"}),
            code.ALREADY_EXISTS,
            "MEMORY_ALREADY_EXISTS",
        ),
        (
            stub.CreateLink,
            pb.CreateLinkRequest(scope=scope, source_id=a.id, target_id=b.id, type=2),
            code.ALREADY_EXISTS,
            "LINK_ALREADY_EXISTS",
        ),
        (
            stub.Search,
            pb.SearchRequest(scope=scope, query="x", vector=[1.0] * 384, model_id="other"),
            code.FAILED_PRECONDITION,
            "MODEL_MISMATCH",
        ),
        (
            stub.Search,
            pb.SearchRequest(scope=scope, query="x", vector=[1.0] * 3, model_id="hashing-384-1"),
            code.INVALID_ARGUMENT,
            "INVALID_ARGUMENT",
        ),
    ]
    for call, request, wanted, reason in cases:
        refusal = casekit.refused(lambda call=call, request=request: call(request, timeout=30))
        assert (refusal.code, refusal.reason, refusal.domain) == (wanted, reason, "memxd")
        assert refusal.message


def test_errors_within_a_stream_and_a_bundle_have_the_same_content(client: Client) -> None:
    """SEMANTICS Errors: items of StoreMany and SearchMany are refused like calls of their own."""
    with pytest.raises(InvalidArgumentError) as alone:
        client.store("")
    stored = list(client.store_many(["good one", "", "good two"]))
    assert [isinstance(s, StoreAnswer) for s in stored] == [True, False, True]
    refused = stored[1]
    assert isinstance(refused, InvalidArgumentError)
    assert (refused.reason, refused.message) == (alone.value.reason, alone.value.message)
    assert refused.violations[0].field == "memory.content"
    [answer] = client.search_many([Question("x", k=201)])
    assert isinstance(answer, InvalidArgumentError)
    assert answer.violations[0].field == "k"


def test_errors_unknown_enum_numbers_are_refused(client: Client, hashing_world: World) -> None:
    """SEMANTICS Errors: a number of a newer contract is refused by name, never guessed."""
    stub = hashing_world.started[0].memory
    scope = scope_of(client)
    for request, field in (
        (pb.SearchRequest(scope=scope, query="x", mode=9), "mode"),
        (pb.SearchRequest(scope=scope, query="x", ranking={"profile": 9}), "ranking.profile"),
        (pb.SearchRequest(scope=scope, query="x", ranking={"dedup": 9}), "ranking.dedup"),
        (pb.SearchRequest(scope=scope, query="x", filter={"types": [0]}), "filter.types[0]"),
        (pb.SearchRequest(scope=scope, query="x", filter={"states": [9]}), "filter.states[0]"),
    ):
        assert casekit.refused(lambda request=request: stub.Search(request)).field == field


def test_errors_the_limits_of_the_contract_are_the_documented_ones() -> None:
    """SEMANTICS Sizes: the numbers this page pins."""
    assert (Limits.K_DEFAULT, Limits.K, Limits.PAGE_DEFAULT, Limits.PAGE, Limits.SEARCHES) == (10, 200, 50, 500, 32)
    assert (Limits.ANSWER_BYTES, Limits.SCOPE_PART, Limits.REQUEST_ID) == (LIMIT, 128, 64)

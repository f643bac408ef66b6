"""Case 18: answers are never too large to be received: pages, streams, and texts cut where they must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct

from casekit import Case, fresh_scope, refused, word
from memxd.autostart import target
from memxd.client import Item
from memxd.errors import InvalidArgumentError
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import memory_service_pb2_grpc

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
CEILING = int(3.5 * MIB)
MANY = 10_000


def text(n: int) -> str:
    """2 kB that begin with something of their own."""
    return f"memory {word(n)} of the large store. " + "words that fill two kilobytes go here " * 52


@pytest.fixture(scope="module")
def plain(hashing: Case) -> Iterator[Any]:
    """Stubs on a channel of nothing but defaults: 4 MiB is the most it takes."""
    with grpc.insecure_channel(target(hashing.daemon.socket)) as channel:
        yield memory_service_pb2_grpc.MemoryServiceStub(channel)


@pytest.fixture(scope="module")
def large(hashing: Case) -> mem.Scope:
    scope = fresh_scope("large")
    with hashing.client(scope) as client:
        model = hashing.admin.Status(admin_pb.StatusRequest(), timeout=20).model
        # With vectors of the caller's own, since nothing here depends on them.
        items = (Item(text(n), vector=[1.0, n] + [0.0] * (model.dimension - 2), model_id=model.id) for n in range(MANY))
        answers = client.store_many(items, timeout=300)
        assert sum(hasattr(a, "memory") for a in answers) == MANY
    return scope


def pages(plain: Any, **fields: Any) -> Iterator[pb.ListResponse]:
    token = ""
    while True:
        page = plain.List(pb.ListRequest(page_token=token, **fields), timeout=60)
        assert page.ByteSize() <= CEILING
        yield page
        token = page.next_page_token
        if not token:
            return


@pytest.mark.parametrize("page_size", [500, 499])
def test_ten_thousand_are_listed_page_by_page_each_once(plain: Any, large: mem.Scope, page_size: int) -> None:
    seen = [m.content for page in pages(plain, scope=large, page_size=page_size) for m in page.memories]
    assert len(seen) == MANY
    assert set(seen) == {text(n).strip() for n in range(MANY)}


@pytest.mark.parametrize("order", range(7))
def test_every_order_pages_without_loss(plain: Any, large: mem.Scope, order: int) -> None:
    ids = [m.id for page in pages(plain, scope=large, page_size=500, order=order) for m in page.memories]
    assert len(ids) == len(set(ids)) == MANY


def test_the_client_iterates_over_all(hashing: Case, large: mem.Scope) -> None:
    with hashing.client(large) as client:
        assert sum(1 for _ in client.iter_list(page_size=500)) == MANY
        assert client.count() == MANY


def test_two_hundred_hits_and_thirty_two_searches_of_them(plain: Any, large: mem.Scope) -> None:
    one = pb.SearchRequest(
        scope=large,
        query="memory of the large store",
        k=200,
        explain=True,
        record_retrieval=False,
        asked_at={"seconds": 2**31},
    )
    single = plain.Search(one, timeout=60)
    assert single.ByteSize() <= CEILING
    assert len(single.hits) == 200
    many = plain.SearchMany(pb.SearchManyRequest(searches=[one] * 32), timeout=120)
    assert many.ByteSize() <= CEILING
    for result in many.results:
        assert [(h.memory.id, h.score, h.rank) for h in result.response.hits] == [
            (h.memory.id, h.score, h.rank) for h in single.hits
        ], "ids and scores stay"
        assert all(h.memory.content_truncated for h in result.response.hits)


@pytest.fixture(scope="module")
def huge(hashing: Case) -> list[mem.Memory]:
    """The largest there may be: 65,536 characters of four bytes, with 16 KiB of metadata, linked in a star."""
    scope = fresh_scope("huge")
    metadata = Struct()
    metadata.update({"k": "x" * 16_000})
    contents = [f"{word(n)} star " + "🦊" * (65_536 - 20) for n in range(40)]
    own = {"vector": [1.0] * 384, "model_id": "hashing-384-1"}
    # One by one: a single message holds no more than 4 MiB.
    stored = [hashing.store(scope, content, metadata=metadata, **own) for content in contents]
    for other in stored[1:]:
        request = pb.CreateLinkRequest(
            scope=scope, source_id=stored[0].id, target_id=other.id, type=mem.LINK_TYPE_RELATED, metadata=metadata
        )
        hashing.memory.CreateLink(request, timeout=20)
    return stored


def test_the_largest_memories_are_listed_whole(plain: Any, huge: list[mem.Memory]) -> None:
    listed = [m for page in pages(plain, scope=huge[0].scope, page_size=500) for m in page.memories]
    assert {m.id: m.content for m in listed} == {m.id: m.content for m in huge}
    assert not any(m.content_truncated for m in listed)


def test_the_largest_memories_are_found_and_walked_to(plain: Any, huge: list[mem.Memory]) -> None:
    scope = huge[0].scope
    answer = plain.Search(
        pb.SearchRequest(scope=scope, query="star", k=200, expand_links=1, ranking={"reject": False}), timeout=60
    )
    assert answer.ByteSize() <= CEILING
    assert len({h.memory.id for h in answer.hits}) == 40
    cut = [h.memory for h in answer.hits if h.memory.content_truncated]
    assert cut
    whole = {m.id: m.content for m in huge}
    assert all(whole[m.id].startswith(m.content) for m in cut), "cut at the end, never within a character"
    walk = plain.Traverse(pb.TraverseRequest(scope=scope, start_id=huge[0].id, max_nodes=500), timeout=60)
    assert walk.ByteSize() <= CEILING
    assert {t.memory.id for t in walk.memories} == {m.id for m in huge[1:]}


def test_get_and_store_answer_the_largest_memory_whole(plain: Any, huge: list[mem.Memory]) -> None:
    memory = plain.Get(pb.GetRequest(scope=huge[0].scope, id=huge[0].id), timeout=20).memory
    assert len(memory.content) >= 65_000
    assert not memory.content_truncated


def test_links_with_large_metadata_are_paged(plain: Any, hashing: Case) -> None:
    scope = fresh_scope("star")
    metadata = Struct()
    metadata.update({"k": "x" * 16_000})
    hub, *others = hashing.store_all(scope, [pb.NewMemory(content=f"node {word(n)}") for n in range(301)])
    for other in others:
        request = pb.CreateLinkRequest(
            scope=scope, source_id=hub.id, target_id=other.id, type=mem.LINK_TYPE_SIMILAR, metadata=metadata
        )
        hashing.memory.CreateLink(request, timeout=20)
    seen: list[str] = []
    token = ""
    while True:
        request = pb.ListLinksRequest(scope=scope, memory_id=hub.id, page_size=500, page_token=token)
        page = plain.ListLinks(request, timeout=60)
        assert page.ByteSize() <= CEILING
        assert page.total_count == 300
        seen += [link.target_id for link in page.links]
        token = page.next_page_token
        if not token:
            break
    assert sorted(seen) == sorted(m.id for m in others)
    walk = plain.Traverse(pb.TraverseRequest(scope=scope, start_id=hub.id, max_nodes=500), timeout=60)
    assert walk.ByteSize() <= CEILING
    assert len(walk.memories) == 300


def test_a_request_above_four_mebibytes_is_refused_in_words(hashing: Case, scope: mem.Scope) -> None:
    with hashing.client(scope) as client:
        with pytest.raises(InvalidArgumentError, match="limit"):
            client.store("x" * (5 * MIB))
        client.store("and the connection goes on")
        assert client.count() == 1
    just_below = pb.StoreRequest(scope=scope, memory=pb.NewMemory(content="x" * (4 * MIB - 1_000)))
    assert refused(lambda: hashing.memory.Store(just_below, timeout=20)).field == "memory.content"


def test_deleting_thousands_in_one_call(hashing: Case) -> None:
    scope = fresh_scope("to-go")
    hashing.store_all(scope, [pb.NewMemory(content=f"to go {n}", tags=["old"]) for n in range(3_000)])
    request = pb.DeleteManyRequest(scope=scope, filter=mem.Filter(tags_any=["old"]))
    assert hashing.memory.DeleteMany(request, timeout=60).deleted_count == 3_000
    assert hashing.count(scope) == 0

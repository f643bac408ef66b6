"""FEATURES X2 and SEMANTICS "Access and retrieval": viewing and being found are counted apart, softly."""

from __future__ import annotations

import time

from featurekit import World
from memxd.client import Client, Question
from memxd.model import Memory


def look(client: Client, id: str) -> Memory:
    """The record without leaving a trace."""
    return client.get(id, record_access=False)


def test_x2_get_counts_one_access_and_no_retrieval(client: Client) -> None:
    """X2: access_count and last_accessed_at grow by Get alone; the answer shows them as they were before."""
    id = client.store("The spare key hangs behind the boiler.").memory.id
    before = time.time()
    assert client.get(id).access_count == 0
    assert client.get(id).access_count == 1
    memory = look(client, id)
    assert (memory.access_count, memory.retrieval_count) == (2, 0)
    assert memory.last_accessed_at is not None
    assert abs(memory.last_accessed_at / 1e6 - before) < 30
    assert memory.last_retrieved_at is None


def test_x2_search_counts_one_retrieval_for_each_hit_and_no_access(client: Client) -> None:
    """X2: retrieval_count and last_retrieved_at grow for hits finally returned, also by SearchMany."""
    hit = client.store("The spare key hangs behind the boiler.").memory.id
    other = client.store("Tuesdays are for swimming.").memory.id
    assert [h.memory.id for h in client.search("spare key boiler", k=1).hits] == [hit]
    client.search_many([Question("spare key boiler", k=1), Question("boiler key", k=1)])
    memory = look(client, hit)
    assert (memory.access_count, memory.retrieval_count) == (0, 3)
    assert memory.last_retrieved_at is not None
    assert memory.last_accessed_at is None
    assert look(client, other).retrieval_count == 0


def test_semantics_no_trace_where_none_is_wanted(client: Client) -> None:
    """SEMANTICS Access: record_retrieval=false and record_access=false leave no trace; List and Traverse neither."""
    id = client.store("The spare key hangs behind the boiler.").memory.id
    other = client.store("The boiler was serviced in May.").memory.id
    client.create_link(id, other, "related")
    client.search("spare key", record_retrieval=False)
    client.search_many([Question("spare key", record_retrieval=False)])
    look(client, id)
    client.list()
    client.traverse(id)
    client.count()
    for each in (id, other):
        memory = look(client, each)
        assert (memory.access_count, memory.retrieval_count, memory.last_retrieved_at) == (0, 0, None)


def test_semantics_rejected_folded_and_expanded_hits_are_not_counted(client: Client) -> None:
    """SEMANTICS Access: nothing for rejected, folded or expanded ones, nor for hits below min_relevance."""
    first = client.store("Pasta needs ten minutes.", importance=0.9).memory.id
    folded = client.store("pasta needs TEN minutes!").memory.id
    reached = client.store("Zebra crossings are white.").memory.id
    client.create_link(first, reached, "related")
    answer = client.search("pasta ten minutes", k=1, expand_links=1)
    assert [(h.memory.id, h.expanded) for h in answer.hits] == [(first, False), (reached, True)]
    assert answer.folded == 1
    client.search("pasta ten minutes", min_relevance=1.0)
    assert client.search("xylophone quartz").rejected
    assert [look(client, i).retrieval_count for i in (first, folded, reached)] == [1, 0, 0]


def test_x2_counting_moves_no_revision_and_no_index(client: Client) -> None:
    """X2, better: a counter bump re-indexes nothing: revision and every watermark stay, also after a flush."""
    id = client.store("The spare key hangs behind the boiler.").memory.id
    client.flush()

    def marks() -> list[object]:
        status = client.status().engine
        return [status.revision, [(i.kind, i.watermark, i.entries, i.tail_entries) for i in status.indexes]]

    before = marks()
    record = look(client, id)
    for _ in range(5):
        client.get(id)
        client.search("spare key")
    client.flush()
    assert marks() == before
    after = look(client, id)
    assert (after.access_count, after.retrieval_count) == (5, 5)
    assert (after.revision, after.updated_at) == (record.revision, record.updated_at)


def test_x2_counters_survive_a_restart(world: World) -> None:
    """X2: flushed in batches and at stop, so an orderly stop loses none."""
    daemon = world.serve()
    with world.client() as client:
        id = client.store("The spare key hangs behind the boiler.").memory.id
        client.get(id)
        client.search("spare key")
        assert daemon.stop() == 0
    world.serve()
    with world.client() as client:
        memory = look(client, id)
        assert (memory.access_count, memory.retrieval_count) == (1, 1)
        assert memory.last_retrieved_at is not None

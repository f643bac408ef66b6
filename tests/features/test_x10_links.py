"""FEATURES X10 and SEMANTICS "Links": typed edges, listed, counted, walked within bounds, followed by a search."""

from __future__ import annotations

from itertools import pairwise

import pytest

from featurekit import NOBODY, ask, fresh_scope
from memxd.client import Client, where
from memxd.errors import (
    DuplicateLinkError,
    InvalidArgumentError,
    LinkCycleError,
    LinkNotFoundError,
    MemoryNotFoundError,
)
from memxd.model import Link, LinkType

TYPES = ["similar", "related", "contradicts", "extends", "supersedes", "caused_by", "temporal"]


def store(client: Client, *texts: str) -> list[str]:
    return [client.store(text).memory.id for text in texts]


@pytest.mark.parametrize("kind", TYPES)
def test_x10_all_seven_types_with_default_strength(client: Client, kind: str) -> None:
    """X10: each type, strength 0.7 by default, metadata, server-made id."""
    a, b = store(client, "alpha", "beta")
    link = client.create_link(a, b, kind, metadata={"why": ["x", 1]})
    assert (link.source_id, link.target_id, link.type.name.lower()) == (a, b, kind)
    assert (link.strength, link.bidirectional, link.metadata) == (0.7, False, {"why": ["x", 1]})
    assert link.created_at > 0
    [listed] = client.list_links(a, types=[kind]).links
    assert listed == link
    assert client.list_links(a, types=[t for t in TYPES if t != kind]).total == 0


def test_x10_lists_include_the_reverse_strongest_first(client: Client) -> None:
    """X10: links of a memory in both directions by strength, counted, filtered, page by page."""
    centre, *others = store(client, "centre", "o1", "o2", "o3", "o4")
    client.create_link(centre, others[0], "related", strength=0.2)
    client.create_link(others[1], centre, "extends", strength=0.9)
    client.create_link(centre, others[2], "similar", strength=0.5, bidirectional=True)
    client.create_link(others[3], centre, "related", strength=0.5)

    def strengths(**options: object) -> list[float]:
        return [x.strength for x in client.list_links(centre, **options).links]  # type: ignore[arg-type]

    assert strengths() == [0.9, 0.5, 0.5, 0.2]
    assert strengths(direction="outgoing") == [0.5, 0.2]
    assert strengths(direction="incoming") == [0.9, 0.5, 0.5]
    assert strengths(strength_min=0.5) == [0.9, 0.5, 0.5]
    assert strengths(types=["related"]) == [0.5, 0.2]
    whole = client.list_links(centre)
    assert whole.total == 4
    seen: list[Link] = []
    token = ""
    while True:
        page = client.list_links(centre, page_size=1, page_token=token)
        assert page.total == 4
        seen.extend(page.links)
        if not (token := page.next_page_token):
            break
    assert tuple(seen) == whole.links
    assert all(a.id < b.id for a, b in pairwise(seen) if a.strength == b.strength)


def test_x10_no_self_dangling_or_duplicate_link(client: Client) -> None:
    """X10, better; SEMANTICS Links: self links are refused, ends must exist, a repetition names the existing one."""
    a, b = store(client, "alpha", "beta")
    with pytest.raises(InvalidArgumentError) as caught:
        client.create_link(a, a, "related")
    assert caught.value.violations[0].field == "target_id"
    for ends in ((a, NOBODY), (NOBODY, a)):
        with pytest.raises(MemoryNotFoundError):
            client.create_link(*ends, "related")
    link = client.create_link(a, b, "related")
    with pytest.raises(DuplicateLinkError) as again:
        client.create_link(a, b, "related", strength=0.1)
    assert again.value.metadata["id"] == link.id
    assert client.create_link(a, b, "similar").id != link.id
    assert client.create_link(b, a, "related").id != link.id
    with pytest.raises(InvalidArgumentError):
        client.create_link(a, b, "extends", strength=1.5)


def test_semantics_the_reverse_of_a_bidirectional_link_is_the_same(client: Client) -> None:
    """SEMANTICS Links: reverse of a bidirectional one = ALREADY_EXISTS with the id, whichever of the two is it."""
    a, b, c = store(client, "alpha", "beta", "gamma")
    both = client.create_link(a, b, "similar", bidirectional=True)
    with pytest.raises(DuplicateLinkError) as caught:
        client.create_link(b, a, "similar")
    assert caught.value.metadata["id"] == both.id
    one = client.create_link(a, c, "similar")
    with pytest.raises(DuplicateLinkError) as caught:
        client.create_link(c, a, "similar", bidirectional=True)
    assert caught.value.metadata["id"] == one.id
    with pytest.raises(InvalidArgumentError) as refused:
        client.create_link(b, c, "supersedes", bidirectional=True)
    assert refused.value.violations[0].field == "bidirectional"


def test_semantics_links_stay_within_a_scope(client: Client) -> None:
    """SEMANTICS Links, Scope: no link across scopes; another scope's link is as if it never was."""
    a, b = store(client, "alpha", "beta")
    other = fresh_scope(client)
    [foreign] = store(other, "gamma")
    with pytest.raises(MemoryNotFoundError):
        client.create_link(a, foreign, "related")
    link = client.create_link(a, b, "related")
    with pytest.raises(LinkNotFoundError):
        other.delete_link(link.id)
    with pytest.raises(MemoryNotFoundError):
        other.list_links(a)
    with pytest.raises(MemoryNotFoundError):
        other.traverse(a)
    assert client.list_links(a).total == 1


def test_semantics_deleting_a_memory_deletes_its_links(client: Client) -> None:
    """X10, better: foreign keys: nothing dangles after Delete, DeleteMany or DeleteLink."""
    a, b, c = store(client, "alpha", "beta", "gamma")
    gone = client.create_link(a, b, "related").id
    kept = client.create_link(a, c, "related").id
    client.delete(b)
    assert [x.id for x in client.list_links(a).links] == [kept]
    with pytest.raises(LinkNotFoundError):
        client.delete_link(gone)
    client.delete_many(where(ids=[c]))
    assert client.list_links(a).total == 0
    with pytest.raises(LinkNotFoundError):
        client.delete_link(kept)


def test_x10_traversal_is_bounded_in_depth_types_and_direction(client: Client) -> None:
    """X10, better: the advertised walk exists: nearest first, path strength and links, depth 1..6."""
    chain = store(client, *(f"stop {n}" for n in range(8)))
    links = [client.create_link(a, b, "temporal", strength=0.5).id for a, b in pairwise(chain)]
    walk = client.traverse(chain[0])
    assert [(t.memory.id, t.depth) for t in walk.memories] == [(chain[1], 1), (chain[2], 2)]
    assert [t.path_strength for t in walk.memories] == [0.5, 0.25]
    assert [t.link_ids for t in walk.memories] == [(links[0],), (links[0], links[1])]
    assert {x.id for x in walk.links} == set(links[:2])
    assert not walk.truncated
    assert len(client.traverse(chain[0], max_depth=6).memories) == 6
    assert len(client.traverse(chain[3], max_depth=1).memories) == 2
    assert [t.memory.id for t in client.traverse(chain[3], max_depth=1, direction="incoming").memories] == [chain[2]]
    assert client.traverse(chain[0], types=["related"]).memories == ()
    assert client.traverse(chain[0], strength_min=0.6).memories == ()
    cut = client.traverse(chain[0], max_depth=6, max_nodes=3)
    assert (len(cut.memories), cut.truncated) == (3, True)
    for bad in ({"max_depth": 0}, {"max_depth": 7}, {"max_nodes": 0}, {"max_nodes": 501}):
        with pytest.raises(InvalidArgumentError):
            client.traverse(chain[0], **bad)


def test_x10_traversal_survives_circles_and_takes_the_strongest_shortest_path(client: Client) -> None:
    """X10: each memory once, by a shortest path, the strongest of those; bidirectional links lead both ways."""
    a, b, c, d = store(client, "alpha", "beta", "gamma", "delta")
    client.create_link(a, b, "related", strength=0.2)
    client.create_link(a, c, "related", strength=0.9)
    client.create_link(b, d, "related", strength=1.0)
    strong = client.create_link(d, c, "related", strength=0.8, bidirectional=True)
    client.create_link(d, a, "caused_by", strength=0.1)
    walk = client.traverse(a, max_depth=6, types=["related"], direction="outgoing")
    assert [(t.memory.id, t.depth) for t in walk.memories] == [(c, 1), (b, 1), (d, 2)]
    assert walk.memories[2].path_strength == pytest.approx(0.9 * 0.8)
    assert walk.memories[2].link_ids[-1] == strong.id


def test_x10_supersedes_links_change_the_target_and_refuse_circles(client: Client) -> None:
    """X10, SEMANTICS Superseding: the target is SUPERSEDED while the link is there."""
    old, new, newest = store(client, "first", "second", "third")
    link = client.create_link(new, old, "supersedes")
    client.create_link(newest, new, "supersedes")
    assert client.get(old).superseded_by == new
    for source, target in ((old, new), (old, newest)):
        with pytest.raises(LinkCycleError):
            client.create_link(source, target, "supersedes")
    client.delete_link(link.id)
    assert client.get(old).superseded_by == ""


def test_x10_search_follows_links_on_request(client: Client) -> None:
    """X10: expand_links appends what the hits' links reach, marked, behind the ranked hits, at most k of them."""
    hit, near, far, hidden, weak = store(client, "pasta recipe", "zebra one", "zebra two", "zebra three", "zebra four")
    client.create_link(hit, near, "extends", strength=0.9)
    client.create_link(far, near, "related", strength=0.9)
    client.create_link(hit, hidden, "related", strength=1.0)
    client.create_link(hit, weak, "related", strength=0.1)
    client.update(hidden, state="archived")

    def reached(depth: int, k: int = 10) -> list[tuple[str, bool, str]]:
        hits = ask(client, "pasta recipe", expand_links=depth, k=k, min_relevance=0.5).hits
        assert [h.rank for h in hits] == list(range(1, len(hits) + 1))
        assert all(h.score == h.relevance == 0.0 and h.explanation is None for h in hits if h.expanded)
        return [(h.memory.id, h.expanded, h.expanded_from) for h in hits]

    first = (hit, False, "")
    assert reached(0) == [first]
    assert reached(1) == [first, (near, True, hit), (weak, True, hit)]
    assert set(reached(2)) == {first, (near, True, hit), (weak, True, hit), (far, True, hit)}
    # What is hidden takes nobody's place.
    assert reached(1, k=1) == [first, (near, True, hit)]
    for bad in (-1, 4):
        with pytest.raises(InvalidArgumentError) as caught:
            client.search("pasta", expand_links=bad)
        assert caught.value.violations[0].field == "expand_links"


def test_x10_link_types_are_the_contracts(client: Client) -> None:
    """X10: seven types, no more."""
    assert [t.name.lower() for t in LinkType] == TYPES

"""SEMANTICS "private": readable in its scope, never sent away, never logged; private spans are in no index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from featurekit import Service, World, ask, causes, fresh_scope, ids, until, why, world
from memxd.client import NO_RETRY, Client, where
from memxd.errors import MemoryNotFoundError
from memxd.model import IndexKind


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[World, Service]]:
    """A daemon whose embedder is not this machine's: an address elsewhere, reached through a proxy (our service)."""
    service = Service(64)
    proxy = {"HTTP_PROXY": f"http://127.0.0.1:{service.port}", "NO_PROXY": "", "no_proxy": ""}
    with world() as place:
        flags = service.flags(**{"openai-base-url": "http://embeddings.example/v1"})
        place.serve(*flags, "--log-level", "debug", embedder="openai", extra=proxy)
        yield place, service
        service.off()


@pytest.fixture
def away(remote: tuple[World, Service]) -> Client:
    """A scope at the daemon with the remote embedder."""
    client = remote[0].client(retry=NO_RETRY)
    assert client.status().engine.model.remote
    return fresh_scope(client)


def test_private_is_never_sent_to_a_remote_embedder(away: Client, remote: tuple[World, Service]) -> None:
    """SEMANTICS private: keyword only, and the explanation says so; everything else is embedded as ever."""
    open_id = away.store("Bo keeps bees in Porto.").memory.id
    hidden = away.store("The safe code is heliotrope.", private=True).memory
    assert (hidden.private, hidden.vector_pending) == (True, True)
    answer = ask(away, "what is the safe code heliotrope")
    assert ids(answer)[0] == hidden.id
    assert causes(answer) == []  # its vector is not going to come, so nothing is missing
    explanation = why(answer.hits[0])
    assert (explanation.cosine, explanation.vector_rank) == (None, None)
    assert any("private" in note for note in explanation.notes)
    away.update(hidden.id, content="The safe code is heliotrope-2.")
    assert away.get(hidden.id).private
    assert [m.id for m in away.list().memories] == [hidden.id, open_id]
    sent = [t for t in remote[1].texts if "code" in t and "what is" not in t]
    assert sent == []


def test_private_can_be_lifted_and_set(away: Client, remote: tuple[World, Service]) -> None:
    """SEMANTICS private: no more private, it gets its vector; made private, its new text is not sent."""
    id = away.store("The ladder stands behind the shed.", private=True).memory.id
    away.update(id, private=False)
    until(lambda: not away.get(id).vector_pending)
    assert "The ladder stands behind the shed." in remote[1].texts
    assert ids(ask(away, "ladder behind the shed", mode="vector")) == [id]
    away.update(id, private=True, content="The ladder stands in the cellar.")
    assert not [t for t in remote[1].texts if "cellar" in t]
    assert ids(ask(away, "ladder cellar", mode="keyword")) == [id]
    assert causes(ask(away, "where is the ladder")) == []


@pytest.mark.slow
def test_private_set_while_its_vector_was_pending(away: Client, remote: tuple[World, Service]) -> None:
    """SEMANTICS private: made private before the service came back: it is not sent then, and no longer awaited."""
    remote[1].off()
    id = away.store("The boat leaks at the stern.").memory.id
    other = away.store("The oars are new.").memory.id
    away.update(id, private=True)
    remote[1].on()
    until(lambda: not away.get(other).vector_pending, 60)
    assert causes(ask(away, "does the boat leak")) == []
    assert not [t for t in remote[1].texts if "stern" in t]


def test_private_with_a_local_embedder_is_compared_like_any_other(client: Client) -> None:
    """SEMANTICS private: readable within its scope like any record: both legs, list, count, update."""
    id = client.store("The safe code is heliotrope.", private=True).memory.id
    hit = ask(client, "safe code heliotrope").hits[0]
    assert (hit.memory.id, hit.memory.private) == (id, True)
    assert why(hit).cosine is not None
    assert why(hit).notes == ()
    assert client.count() == 1


def test_private_text_is_in_no_log(away: Client, remote: tuple[World, Service]) -> None:
    """SEMANTICS private: never in logs, at debug level either; nor is any other content or query."""
    away.store("quetzalcoatl one", private=True)
    away.store("quetzalcoatl two")
    away.search("quetzalcoatl three")
    with pytest.raises(MemoryNotFoundError):
        away.get("0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e")
    assert remote[0].started[0].log
    assert "quetzalcoatl" not in remote[0].started[0].log


def test_private_spans_are_stored_but_in_neither_index(away: Client, remote: tuple[World, Service]) -> None:
    """SEMANTICS private: <private>...</private> spans are kept in the text and found by no leg, sent to no service."""
    text = "The alarm code is <private>four-two-nine-one zanzibar</private> since May."
    id = away.store(text).memory.id
    assert away.get(id).content == text
    assert ids(ask(away, "alarm code since May")) == [id]
    assert ask(away, "zanzibar", mode="keyword").rejected
    assert not [t for t in remote[1].texts if "four-two" in t]
    away.update(id, content="The alarm code is <private>seven-seven quixote</private> now.")
    assert ask(away, "quixote", mode="keyword").rejected
    assert not [t for t in remote[1].texts if "seven-seven" in t]
    only = away.store("<private>nothing but zanzibar</private>").memory
    assert not only.vector_pending
    assert ask(away, "zanzibar", mode="keyword").rejected
    assert away.count(where(ids=[only.id])) == 1


def test_private_spans_stay_out_when_an_index_is_rebuilt(client: Client) -> None:
    """SEMANTICS private: a rebuild from the store indexes no more than the first time."""
    client.store("The alarm code is <private>zanzibar</private> since May.")
    for kind in (IndexKind.KEYWORD, IndexKind.VECTOR):
        for _ in client.rebuild(kind):
            pass
    assert ask(client, "zanzibar", mode="keyword").rejected
    assert len(ask(client, "alarm code").hits) == 1


def test_private_is_not_sent_when_it_is_imported(away: Client, remote: tuple[World, Service], client: Client) -> None:
    """SEMANTICS private: nor when it comes as a line of an export, nor when it is edited after that."""
    id = client.store("The vault opens at chrysolite.", private=True).memory.id
    client.store("The shed key is <private>under sardonyx</private>.")
    lines = b"".join(step.lines for step in client.export(include_private=True)).splitlines()
    [*_, last] = away.import_lines(lines)
    assert (last.added, last.refused) == (2, 0)
    away.update(id, content="The vault opens at chrysolite-2.")
    assert [hit.memory.id for hit in ask(away, "vault opens").hits][:1] == [id]
    assert not [text for text in remote[1].texts if "chrysolite" in text or "sardonyx" in text]


def test_private_is_left_out_of_an_export_and_counted(client: Client) -> None:
    """SEMANTICS private: Export leaves it out and says how many; include_private takes it along."""
    client.store("The vault opens at chrysolite.", private=True)
    client.store("Ada likes tea.")
    [*_, last] = client.export()
    assert (last.private_left_out, last.done) == (1, 1)
    assert b"chrysolite" not in b"".join(step.lines for step in client.export())
    assert b"chrysolite" in b"".join(step.lines for step in client.export(include_private=True))
    assert [step.private_left_out for step in client.export(include_private=True)][-1] == 0

"""Each verb sends what its arguments say, in the scope the client is bound to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memxd.client import Client, Question, where
from memxd.errors import InvalidArgumentError, MemxdError
from memxd.model import SearchAnswer
from memxd.v1 import admin_service_pb2, memory_pb2, memory_service_pb2

pb = memory_service_pb2
MEMORY = memory_pb2.Memory(id="m", type=2, state=1)


def test_a_client_is_bound_to_its_scope(server: Any, make_client: Any) -> None:
    server.on("Count", lambda r, c: pb.CountResponse(count=1))
    make_client().count()
    make_client(agent_id="a").count()
    make_client(agent_id="a", user_id="u").count()
    unnamed, half, full = (request.scope for request in server.requests("Count"))
    assert not unnamed.HasField("agent_id")
    assert half.agent_id == "a"
    assert not half.HasField("user_id")
    assert (full.agent_id, full.user_id) == ("a", "u")


def test_a_scoped_view_shares_the_channel_and_does_not_close_it(server: Any, socket: Path) -> None:
    server.on("Count", lambda r, c: pb.CountResponse(count=1))
    with Client(socket, agent_id="a", user_id="u") as client:
        with client.scope(user_id="other") as view:
            assert view.count() == 1
        assert client.count() == 1
    scopes = [(r.scope.agent_id, r.scope.user_id) for r in server.requests("Count")]
    assert scopes == [("a", "other"), ("a", "u")]


def test_update_names_what_is_given_and_clears_with_none(server: Any, client: Any) -> None:
    server.on("Update", lambda r, c: pb.UpdateResponse(memory=MEMORY, revision=4))
    assert client.update("m", content="new", event_at=None, tags=[], expected_revision=0).revision == 4
    (request,) = server.requests("Update")
    assert sorted(request.update_mask.paths) == ["content", "event_at", "tags"]
    assert request.memory.content == "new"
    assert not request.memory.HasField("event_at")
    assert request.HasField("expected_revision")


def test_update_of_nothing_is_refused_before_it_is_sent(server: Any, client: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="update_mask"):
        client.update("m")


def test_delete_many_without_a_scope_leaves_it_to_the_daemon_to_refuse(server: Any, make_client: Any) -> None:
    server.on("DeleteMany", lambda r, c: pb.DeleteManyResponse(deleted_count=3))
    make_client().delete_many()
    assert make_client(agent_id="a", user_id="u").delete_many(where(tags_any=["t"]), dry_run=True) == 3
    bare, full = server.requests("DeleteMany")
    assert not bare.HasField("scope")
    assert not bare.HasField("filter")
    assert full.scope.user_id == "u"
    assert full.filter.tags_any == ["t"]
    assert full.dry_run


def test_get_counts_an_access_unless_told_not_to(server: Any, client: Any) -> None:
    server.on("Get", lambda r, c: pb.GetResponse(memory=MEMORY))
    client.get("m")
    client.get("m", record_access=False)
    first, second = server.requests("Get")
    assert not first.HasField("record_access")
    assert second.HasField("record_access")
    assert not second.record_access


def test_search_many_answers_each_question_on_its_own(server: Any, make_client: Any) -> None:
    results = [
        pb.SearchManyResult(response=pb.SearchResponse(rejected=True, reject_reason=1)),
        pb.SearchManyResult(error=pb.ItemError(reason="INVALID_ARGUMENT", message="query: is blank", field="query")),
    ]
    server.on("SearchMany", lambda r, c: pb.SearchManyResponse(results=results))
    first, second = make_client(agent_id="a").search_many([Question("x", k=3, user_id="u"), " "])
    assert isinstance(first, SearchAnswer)
    assert first.rejected
    assert isinstance(second, MemxdError)
    (request,) = server.requests("SearchMany")
    assert (request.searches[0].k, request.searches[0].scope.user_id) == (3, "u")
    assert request.searches[1].scope.agent_id == "a"


def test_search_sends_every_choice(server: Any, client: Any) -> None:
    server.on("Search", lambda r, c: pb.SearchResponse())
    client.search("q", k=0, mode="keyword", profile="memex", min_relevance=0.0, explain=True, record_retrieval=False,
                  time_zone="Europe/Berlin", include_superseded=True, exact=True, vector=[0.5], model_id="m",
                  expand_links=2, timings=True, asked_at=5, as_of=6)  # fmt: skip
    (sent,) = server.requests("Search")
    named = {field.name for field, _ in sent.ListFields()}
    assert named == set(sent.DESCRIPTOR.fields_by_name) - {"filter"}
    assert sent.HasField("k")


def test_status_carries_the_engines_and_the_processes_facts(server: Any, client: Any) -> None:
    answer = admin_service_pb2.StatusResponse(
        version="1.2", pid=7, revision=3, memories=4, kernels="c",
        indexes=[admin_service_pb2.IndexStatus(kind=1, state=1, watermark=3)],
        scopes=[admin_service_pb2.ScopeCount(scope=memory_pb2.Scope(agent_id="a", user_id="u"), total=2, active=1)],
        sizes=admin_service_pb2.StoreSizes(database_bytes=10), libraries={"grpcio": "1"},
    )  # fmt: skip
    answer.uptime.FromMilliseconds(1500)
    server.on("Status", lambda r, c: answer)
    found = client.status()
    assert (found.version, found.pid, found.uptime, found.libraries) == ("1.2", 7, 1.5, {"grpcio": "1"})
    assert found.engine.scopes[0][0].agent_id == "a"
    assert found.engine.scopes[0][1:] == (2, 1)
    assert found.engine.indexes[0].watermark == 3
    assert found.engine.database_bytes == 10


def test_a_socket_path_with_strange_characters_works(tmp_path: Path) -> None:
    import tempfile

    from scripted import Scripted

    with tempfile.TemporaryDirectory(prefix="memxd ") as folder:
        path = Path(folder) / "ä 100%20.sock"
        server = Scripted(path)
        server.on("Count", lambda r, c: pb.CountResponse(count=1))
        server.start()
        assert path.exists()
        with Client(path) as client:
            assert client.count() == 1
        server.stop()

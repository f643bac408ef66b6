"""A daemon that asks for tokens: every RPC of every service is refused without one, and a scope token opens its scope
alone, in whatever field of a request a scope may stand.

The RPCs and the fields come from the descriptors, so that a new one is tried here by itself.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import casekit
from memxd.client import NO_RETRY, Client, Item, read_token
from memxd.errors import (
    InvalidArgumentError,
    MemoryNotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from memxd.tokens import Token, TokenFile
from memxd.v1 import admin_service_pb2, memory_service_pb2

SCOPE = "memxd.v1.Scope"
MEMORY = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]
ADMIN = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]
HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]
OURS = [(service, method) for service in (MEMORY, ADMIN) for method in service.methods]
CLOSED = [*OURS, *((REFLECTION, method) for method in REFLECTION.methods)]
NAMES = [f"{service.name}.{method.name}" for service, method in CLOSED]


class World:
    """The daemon, its tokens, and a caller for any of them."""

    def __init__(self, daemon: Any) -> None:
        self.daemon = daemon
        self.file = TokenFile(daemon.data_dir)
        self.secrets: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        for name, scope in (("admin", None), ("ada", ("coder", "ada")), ("bob", ("coder", "bob"))):
            self.make(name, scope)

    def make(self, name: str, scope: tuple[str, str] | None, **more: Any) -> Token:
        token, self.secrets[name] = self.file.create(time.time_ns() // 1_000, scope=scope, name=name, **more)
        self.ids[name] = token.id
        return token

    def client(self, name: str, **scope: str) -> Client:
        return Client(self.daemon.socket, token=self.secrets[name], retry=NO_RETRY, **scope)

    def call(self, path: str, request: bytes, metadata: Any = ()) -> tuple[grpc.StatusCode, str, bytes]:
        """Call any method with these bytes; its code, its reason and its whole status. Leaves at the first answer."""
        send = self.daemon.channel.stream_stream(path, request_serializer=None, response_deserializer=None)
        call = send(iter([request]), metadata=metadata, timeout=20)
        try:
            next(call, None)
        except grpc.RpcError:
            pass
        else:
            call.cancel()
            return grpc.StatusCode.OK, "", b""
        packed = dict(call.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        found = status_pb2.Status.FromString(packed)
        info = error_details_pb2.ErrorInfo()
        if found.details:
            found.details[0].Unpack(info)
        return call.code(), info.reason, packed


def bearer(secret: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {secret}")]


@pytest.fixture(scope="module")
def token_world() -> Iterator[World]:
    with casekit.world() as place:
        yield World(place.start("--auth", "token").daemon)


@pytest.fixture
def open_daemon() -> Iterator[Any]:
    """A daemon that asks for nothing."""
    with casekit.world() as place:
        yield place.start().daemon


def path_of(service: Any, method: Any) -> str:
    return f"/{service.full_name}/{method.name}"


def new(descriptor: Descriptor) -> Message:
    return message_factory.GetMessageClass(descriptor)()


def scope_places(descriptor: Descriptor, depth: int = 3) -> Iterator[tuple[str, Callable[[Message], Any]]]:
    """Every place of a message type where a scope may stand: its name, and how to reach it in a message."""
    for field in descriptor.fields if depth else ():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue

        def enter(message: Any, name: str = field.name, many: bool = field.is_repeated) -> Any:
            found = getattr(message, name)
            if many:
                found.add()  # the first one names none
                return found.add()
            found.SetInParent()
            return found

        if field.message_type.full_name == SCOPE:
            yield field.name, enter
        else:
            for name, deeper in scope_places(field.message_type, depth - 1):
                yield f"{field.name}.{name}", lambda message, a=enter, b=deeper: b(a(message))


PLACES = [(method, name, reach) for method in MEMORY.methods for name, reach in scope_places(method.input_type)]


def test_the_daemon_serves_no_service_that_is_not_tried_here(open_daemon: Any) -> None:
    known = {service.full_name for service in (MEMORY, ADMIN, REFLECTION, HEALTH)}
    assert set(ProtoReflectionDescriptorDatabase(open_daemon.channel).get_services()) == known


def test_every_scope_field_of_the_contract_is_in_a_request_that_is_tried() -> None:
    places = {(method.name, name) for method, name, _ in PLACES}
    assert {method.name for method in MEMORY.methods} == {method for method, _ in places}
    assert ("StoreMany", "more.scope") in places
    assert ("SearchMany", "searches.scope") in places
    assert descriptor_pool.Default().FindMessageTypeByName(SCOPE)


@pytest.mark.parametrize(("service", "method"), CLOSED, ids=NAMES)
def test_no_call_without_a_token(token_world: World, service: Any, method: Any) -> None:
    request = new(method.input_type).SerializeToString()
    known = token_world.secrets["admin"]
    headers: list[Any] = [
        (),
        bearer("mx_"),
        bearer("mx_00000000_" + known[12:]),
        bearer(known[:-2] + ("AA" if known[-2:] != "AA" else "BB")),
        [("authorization", known)],
        [("authorization", f"Basic {known}")],
        [*bearer(known), *bearer(known)],
        [("x-authorization", f"Bearer {known}")],
    ]
    for metadata in headers:
        code, reason, _ = token_world.call(path_of(service, method), request, metadata)
        assert (code, reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")


def test_health_asks_for_nothing(token_world: World) -> None:
    health = token_world.daemon.health
    assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
    assert next(health.Watch(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("method", list(ADMIN.methods), ids=lambda method: method.name)
def test_operators_calls_need_the_admin_token(token_world: World, method: Any) -> None:
    request = new(method.input_type).SerializeToString()
    code, reason, _ = token_world.call(path_of(ADMIN, method), request, bearer(token_world.secrets["ada"]))
    assert (code, reason) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    code, _, _ = token_world.call(path_of(ADMIN, method), request, bearer(token_world.secrets["admin"]))
    assert code not in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize(("method", "place", "reach"), PLACES, ids=[f"{m.name}.{p}" for m, p, _ in PLACES])
def test_no_request_opens_another_scope(token_world: World, method: Any, place: str, reach: Any) -> None:
    """In every field, by either part, in other spellings too; the answer is the same whatever is there."""
    answers = set()
    for agent, user in (
        ("coder", "bob"), (None, "bob"), ("planner", None), ("planner", "ada"), ("coder", ""), ("", "ada"),
        ("coder", "ADA"), ("coder", "ada\0"), ("coder", "nobody"), ("cоder", "ada"), ("default", "default"),
    ):  # fmt: skip
        message = new(method.input_type)
        scope = reach(message)
        for part, value in (("agent_id", agent), ("user_id", user)):
            if value is not None:
                setattr(scope, part, value)
        raw = message.SerializeToString()
        answers.add(token_world.call(path_of(MEMORY, method), raw, bearer(token_world.secrets["ada"])))
        code, _, _ = token_world.call(path_of(MEMORY, method), raw, bearer(token_world.secrets["admin"]))
        assert code not in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)
    assert [answer[:2] for answer in answers] == [(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")]


@pytest.mark.parametrize(("method", "place", "reach"), PLACES, ids=[f"{m.name}.{p}" for m, p, _ in PLACES])
def test_every_request_opens_the_tokens_own_scope(token_world: World, method: Any, place: str, reach: Any) -> None:
    for agent, user in ((None, None), ("coder", "ada"), ("coder", None), (None, "ada"), (" coder ", "ada")):
        message = new(method.input_type)
        scope = reach(message)
        for part, value in (("agent_id", agent), ("user_id", user)):
            if value is not None:
                setattr(scope, part, value)
        code, _, _ = token_world.call(
            path_of(MEMORY, method), message.SerializeToString(), bearer(token_world.secrets["ada"])
        )
        assert code not in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


def test_a_call_without_a_scope_means_the_tokens(token_world: World) -> None:
    ada, bob, admin = (token_world.client(name) for name in ("ada", "bob", "admin"))
    mine = ada.store("Ada likes green tea.").memory
    assert (mine.scope.agent_id, mine.scope.user_id) == ("coder", "ada")
    many = list(ada.store_many([Item("Ada has a bicycle."), Item("Ada's cat is Bo.")]))
    assert {answer.memory.scope.user_id for answer in many} == {"ada"}  # type: ignore[union-attr]
    assert ada.count() >= 3
    assert bob.count() == 0
    assert [hit.memory.scope.user_id for hit in ada.search("green tea").hits][:1] == ["ada"]
    assert bob.search("green tea").hits == ()
    assert admin.scope(agent_id="coder", user_id="ada").get(mine.id).id == mine.id
    assert admin.count() == 0  # an admin token means the default scope, as without tokens


def test_whether_anything_is_there_is_not_told(token_world: World) -> None:
    id = token_world.client("ada").store("The safe is behind the mirror.").memory.id
    bob = token_world.client("bob")
    with pytest.raises(MemoryNotFoundError):
        bob.get(id)
    with pytest.raises(MemoryNotFoundError):
        bob.delete(id)
    mine = bob.store("Bob has a boat.").memory.id
    with pytest.raises(MemoryNotFoundError):
        bob.create_link(mine, id, "related")
    with pytest.raises(MemoryNotFoundError):
        bob.store("Bob knows better.", supersedes=[id])
    answers = {
        token_world.call(
            "/memxd.v1.MemoryService/Get",
            memory_service_pb2.GetRequest(scope={"agent_id": "coder", "user_id": "ada"}, id=each).SerializeToString(),
            bearer(token_world.secrets["bob"]),
        )
        for each in (id, "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e", "nonsense", "")
    }
    assert len(answers) == 1


def test_erasing_a_scope_still_wants_it_spelled_out(token_world: World) -> None:
    bob = token_world.client("bob")
    bob.store("Bob keeps bees.")
    raw = memory_service_pb2.DeleteManyRequest().SerializeToString()
    for half in ({}, {"agent_id": "coder"}, {"user_id": "bob"}):
        raw = memory_service_pb2.DeleteManyRequest(scope=half).SerializeToString()
        code, reason, _ = token_world.call(
            "/memxd.v1.MemoryService/DeleteMany", raw, bearer(token_world.secrets["bob"])
        )
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    assert bob.count() > 0
    assert token_world.client("bob", agent_id="coder", user_id="bob").delete_many() > 0
    assert bob.count() == 0


def test_export_and_import_stay_within_the_scope(token_world: World) -> None:
    ada, bob = token_world.client("ada"), token_world.client("bob")
    ada.store("Ada's line.")
    lines = b"".join(step.lines for step in ada.export()).splitlines()
    assert any(b'"ada"' in line for line in lines)  # its header names the scope
    [*_, last] = bob.import_lines(lines)
    assert last.added > 0
    assert {m.scope.user_id for m in bob.iter_list()} == {"bob"}
    for call in (lambda c: c.export(), lambda c: c.import_lines(lines)):
        with pytest.raises(PermissionDeniedError):
            list(call(bob.scope(user_id="ada")))


def test_a_batch_with_one_foreign_scope_is_refused_whole(token_world: World) -> None:
    ada = token_world.client("ada")
    before = ada.count()
    request = memory_service_pb2.StoreManyRequest(memory={"content": "one of mine"})
    request.more.add(memory={"content": "one of bob's"}, scope={"user_id": "bob"})
    code, _, _ = token_world.call(
        "/memxd.v1.MemoryService/StoreMany", request.SerializeToString(), bearer(token_world.secrets["ada"])
    )
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert ada.count() == before
    stream = ada.store_many([Item("first, mine"), Item("then bob's", user_id="bob")], window=1)
    assert next(stream).memory.scope.user_id == "ada"  # type: ignore[union-attr]
    with pytest.raises(PermissionDeniedError):
        next(stream)


def test_a_revoked_token_opens_nothing_at_once_and_its_streams_end(token_world: World) -> None:
    token_world.make("guest", ("coder", "guest"))
    guest = token_world.client("guest")
    for n in range(200):  # more than is under way at once
        guest.store(f"note {n} " + "x" * 60_000)
    export = guest.export()
    next(export)

    revoked = threading.Event()

    def items() -> Iterator[Item]:
        yield Item("before")
        assert revoked.wait(20)
        yield Item("after")

    stream = guest.store_many(items(), window=1)
    assert next(stream).memory.content == "before"  # type: ignore[union-attr]
    token_world.file.revoke(token_world.ids["guest"])
    revoked.set()
    with pytest.raises(UnauthenticatedError):
        next(stream)
    with pytest.raises(UnauthenticatedError, match="revoked"):
        guest.count()
    with pytest.raises(UnauthenticatedError):
        list(export)


def test_a_token_ends_with_its_time(token_world: World) -> None:
    token_world.make("brief", ("coder", "brief"), expires_at=time.time_ns() // 1_000 + 400_000)
    brief = token_world.client("brief")
    assert brief.count() == 0
    time.sleep(0.5)
    with pytest.raises(UnauthenticatedError, match="expired"):
        brief.count()


def test_a_token_file_that_proves_nothing_opens_nothing(token_world: World) -> None:
    admin, path = token_world.client("admin"), token_world.file.path
    whole = path.read_bytes()
    try:
        for spoil in (lambda: path.write_bytes(b"{"), lambda: path.chmod(0o644), path.unlink):
            spoil()
            with pytest.raises(UnauthenticatedError):
                admin.count()
            path.unlink(missing_ok=True)
            path.touch(0o600)
            path.write_bytes(whole)
            assert admin.count() == 0
    finally:
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_bytes(whole)
    assert "no token is believed" in token_world.daemon.log


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux: limits of another process")
def test_a_token_file_that_could_not_be_read_for_a_moment_is_read_again(token_world: World) -> None:
    pid = token_world.daemon.pid
    with token_world.client("ada") as ada:
        memory = ada.store("Ada drinks tea.").memory
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            token_world.make("another", None)  # another file, which the daemon has no descriptor left to open
            for _ in range(3):
                with pytest.raises(UnauthenticatedError):
                    ada.get(memory.id)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        assert ada.get(memory.id).content == "Ada drinks tea."
    told = [line for line in token_world.daemon.log_lines if line["message"] == "no token is believed"]
    assert ["cannot be read" in line["reason"] for line in told[-1:]] == [True]
    assert len([line for line in told if "cannot be read" in line["reason"]]) == 1


def test_reflection_answers_any_token(token_world: World) -> None:
    request = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
    for name in ("ada", "admin"):
        code, _, _ = token_world.call(
            path_of(REFLECTION, REFLECTION.methods[0]), request, bearer(token_world.secrets[name])
        )
        assert code is grpc.StatusCode.OK


def test_the_client_takes_its_token_from_the_environment_or_a_file(
    token_world: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket, secret = token_world.daemon.socket, token_world.secrets["bob"]
    with pytest.raises(UnauthenticatedError, match="MEMX_TOKEN"):
        Client(socket, retry=NO_RETRY).count()
    monkeypatch.setenv("MEMX_TOKEN", secret)
    assert Client(socket).count() >= 0
    monkeypatch.delenv("MEMX_TOKEN")
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(secret + "\n")
    monkeypatch.setenv("MEMX_TOKEN_FILE", str(file))
    assert Client(socket).count() >= 0
    assert read_token(file) == secret


def test_no_secret_is_in_the_log_or_in_what_a_client_shows(token_world: World) -> None:
    client = token_world.client("ada")
    client.count()
    shown = repr(vars(client._link.settings.access)) if hasattr(client._link.settings.access, "__dict__") else ""
    shown += repr(client._link.settings)
    with pytest.raises(InvalidArgumentError) as caught:
        Client(token_world.daemon.socket, token="hunter2 secret")
    for secret in token_world.secrets.values():
        assert secret not in token_world.daemon.log
        assert secret not in shown
    assert "hunter2" not in str(caught.value)


def test_without_a_token_asked_for_one_that_is_sent_does_no_harm(open_daemon: Any) -> None:
    assert Client(open_daemon.socket, token="mx_" + "0" * 8 + "_" + "A" * 43).count() == 0

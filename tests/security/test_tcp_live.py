"""The TCP port: never by default, refused where it would be open, closed to strangers. With certificates made here."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import casekit
from memxd.client import NO_RETRY, AsyncClient, Client, Tls
from memxd.errors import DaemonUnreachableError, InvalidArgumentError, UnauthenticatedError
from memxd.tokens import TokenFile

NOW = 1_700_000_000_000_000


class Certificates:
    """A certificate authority, the daemon's certificate, a client's; and those of a stranger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for ca in ("ours", "theirs"):
            self._openssl("req", "-x509", "-new", *self._key(f"{ca}-ca"), "-out", f"{ca}-ca.pem", "-subj", f"/CN={ca}")
        self._signed("daemon", "ours", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self._signed("client", "ours", "extendedKeyUsage=clientAuth")
        self._signed("stranger", "theirs", "extendedKeyUsage=clientAuth")

    def _key(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def _signed(self, name: str, ca: str, extension: str) -> None:
        (self.folder / f"{name}.ext").write_text(extension)
        self._openssl("req", "-new", *self._key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}-ca.pem", "-CAkey", f"{ca}-ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext",
        )  # fmt: skip
        (self.folder / f"{name}.key").chmod(0o600)

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)

    def tls(self, who: str | None, ca: str = "ours") -> Tls:
        """What a client shows and believes."""
        return Tls(self[f"{ca}-ca.pem"], *((self[f"{who}.pem"], self[f"{who}.key"]) if who else ()))

    def flags(self, *, clients: bool) -> list[str]:
        given = ["--tls-cert", self["daemon.pem"], "--tls-key", self["daemon.key"]]
        return given + (["--tls-client-ca", self["ours-ca.pem"]] if clients else [])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def place() -> Iterator[casekit.World]:
    with casekit.world() as made:
        yield made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refused(call: Any) -> str:
    with pytest.raises(DaemonUnreachableError) as caught:
        call()
    return caught.value.message


def quick(**given: Any) -> Client:
    return Client(retry=NO_RETRY, timeout=5, **given)


def test_no_port_is_opened_by_default(place: casekit.World) -> None:
    daemon = place.start().daemon
    listening = {line.split()[9] for name in ("tcp", "tcp6") for line in sockets(daemon.pid, name)}
    own = {link.readlink().name for link in Path(f"/proc/{daemon.pid}/fd").iterdir() if link.is_symlink()}
    assert not {f"socket:[{inode}]" for inode in listening} & own


def sockets(pid: int, name: str) -> list[str]:
    return Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--listen", "127.0.0.1:{port}"], 'auth = "token"'),
        (["--listen", "0.0.0.0:{port}", "--auth", "token"], "set tls_cert"),
        (["--listen", "0.0.0.0:{port}"], "set tls_cert"),
        (["--listen", "nonsense"], "must be host:port"),
        (["--listen", "127.0.0.1:{port}", "--tls-cert", "/nowhere", "--tls-key", "/nowhere", "--auth", "token"],
         "tls_cert: cannot read"),
    ],
)  # fmt: skip
def test_a_port_that_would_be_open_is_refused_at_the_start(place: casekit.World, flags: list[str], words: str) -> None:
    daemon = place.start(*(flag.format(port=free_port()) for flag in flags), wait=False).daemon
    assert daemon.wait() == 78
    assert words in daemon.log
    assert not place.data_dir.exists(), "refused before anything is made"


def test_a_port_that_is_taken_is_told(place: casekit.World) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        daemon = place.start("--listen", f"127.0.0.1:{port}", "--auth", "token", wait=False).daemon
        assert daemon.wait() == 78
    assert "the address is taken" in daemon.log


@pytest.mark.parametrize("token", [False, True])
def test_mutual_tls_takes_only_clients_with_a_certificate_of_ours(
    place: casekit.World, certificates: Certificates, token: bool
) -> None:
    port = free_port()
    flags = [*certificates.flags(clients=True), *(["--auth", "token"] if token else [])]
    daemon = place.start("--listen", f"127.0.0.1:{port}", *flags).daemon
    address = f"tls://localhost:{port}"
    secret = TokenFile(daemon.data_dir).create(NOW, scope=None)[1] if token else None
    with quick(address=address, tls=certificates.tls("client"), token=secret) as client:
        stored = client.store("Ada likes tea.").memory
        assert client.get(stored.id).content == "Ada likes tea."
        assert [hit.memory.id for hit in client.search("tea").hits] == [stored.id]
    for who in (None, "stranger"):
        with quick(address=address, tls=certificates.tls(who), token=secret) as client:
            assert "certificate" in refused(client.count)
    with quick(address=address, tls=certificates.tls("client", ca="theirs"), token=secret) as client:
        refused(client.count)  # the daemon is not whom this client believes
    with quick(address=f"tcp://127.0.0.1:{port}", token=secret) as client:
        refused(client.count)  # plain text
    if token:
        with quick(address=address, tls=certificates.tls("client")) as client, pytest.raises(UnauthenticatedError):
            client.count()
    with Client(daemon.socket, token=secret) as client:
        assert client.count() == 1  # the socket is as it was


def test_tls_without_client_certificates_asks_for_a_token(place: casekit.World, certificates: Certificates) -> None:
    port = free_port()
    daemon = place.start("--listen", f"127.0.0.1:{port}", *certificates.flags(clients=False), "--auth", "token").daemon
    secret = TokenFile(daemon.data_dir).create(NOW, scope=("coder", "ada"))[1]
    address = f"tls://127.0.0.1:{port}"
    with quick(address=address, tls=certificates.tls(None), token=secret) as client:
        assert client.store("Ada likes tea.").memory.scope.user_id == "ada"
    with quick(address=address, tls=certificates.tls(None)) as client, pytest.raises(UnauthenticatedError):
        client.count()
    with quick(address=f"tcp://127.0.0.1:{port}", token=secret) as client:
        refused(client.count)


async def _stored_and_counted(address: str, tls: Tls, secret: str) -> int:
    async with AsyncClient(address=address, tls=tls, token=secret, retry=NO_RETRY) as client:
        await client.store("Ada likes tea.")
        return await client.count()


def test_the_asynchronous_client_speaks_it_too(place: casekit.World, certificates: Certificates) -> None:
    import asyncio

    port = free_port()
    daemon = place.start("--listen", f"127.0.0.1:{port}", *certificates.flags(clients=True), "--auth", "token").daemon
    secret = TokenFile(daemon.data_dir).create(NOW, scope=("coder", "ada"))[1]
    made = _stored_and_counted(f"tls://localhost:{port}", certificates.tls("client"), secret)
    assert asyncio.run(made) == 1


def test_on_the_loopback_address_a_token_is_enough(place: casekit.World) -> None:
    port = free_port()
    daemon = place.start("--listen", f"127.0.0.1:{port}", "--auth", "token").daemon
    secret = TokenFile(daemon.data_dir).create(NOW, scope=("coder", "ada"))[1]
    with quick(address=f"tcp://127.0.0.1:{port}", token=secret) as client:
        assert client.count() == 0
    with quick(address=f"tcp://127.0.0.1:{port}") as client, pytest.raises(UnauthenticatedError):
        client.count()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == 1


def test_a_web_page_cannot_speak_to_it(place: casekit.World) -> None:
    """What a browser may send without asking: HTTP/1.1 with a simple content type. It is no HTTP/2 preface."""
    port = free_port()
    place.start("--listen", f"127.0.0.1:{port}", "--auth", "token")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as page:
        page.sendall(
            b"POST /memxd.v1.MemoryService/Count HTTP/1.1\r\nHost: localhost\r\nOrigin: https://example.org\r\n"
            b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0"
        )
        answer = b""
        while chunk := page.recv(4_096):
            answer += chunk
    assert b"HTTP/1.1 200" not in answer
    assert b"grpc-status" not in answer


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:7077", "http://127.0.0.1:7077", "tls://", "tls://host", "tls://host:0", "tcp://192.168.1.7:7077",
     "tcp://box.example:7077", "tls://user@host:1", "tls://host:1/path"],
)  # fmt: skip
def test_a_client_refuses_an_address_that_is_none_or_would_show_the_token(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="address"):
        Client(address=address)
    with pytest.raises(InvalidArgumentError, match="not both"):
        Client("/tmp/x.sock", address="tls://host:1")


def test_memx_takes_address_and_token(place: casekit.World, certificates: Certificates, tmp_path: Path) -> None:
    import sys

    port = free_port()
    daemon = place.start("--listen", f"127.0.0.1:{port}", *certificates.flags(clients=True), "--auth", "token").daemon
    secret = TokenFile(daemon.data_dir).create(NOW, scope=("coder", "ada"))[1]
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(secret)
    environ = place.environ | {
        "MEMX_TLS_CA": certificates["ours-ca.pem"],
        "MEMX_TLS_CERT": certificates["client.pem"],
        "MEMX_TLS_KEY": certificates["client.key"],
    }

    def memx(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memxd.cli", *words]
        return subprocess.run(command, env=environ | more, capture_output=True, text=True, check=False, timeout=60)

    flags = ("--address", f"tls://localhost:{port}", "--token-file", str(file))
    assert memx("add", "Ada likes tea.", *flags).returncode == 0
    counted = memx("count", *flags)
    assert (counted.returncode, counted.stdout.strip()) == (0, "1")
    named = memx("count", MEMX_ADDRESS=f"tls://localhost:{port}", MEMX_TOKEN=secret)
    assert named.stdout.strip() == "1"
    without = memx("count", "--address", f"tls://localhost:{port}")
    assert without.returncode == 5
    assert "MEMX_TOKEN" in without.stderr
    file.chmod(0o644)
    shown = memx("count", *flags)
    assert shown.returncode == 2
    assert "chmod 600" in shown.stderr
    assert secret not in shown.stderr + shown.stdout

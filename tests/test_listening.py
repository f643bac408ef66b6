"""A TCP port opens only where nobody can walk in: the rule, the address, the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from memxd.address import is_loopback, split_address
from memxd.errors import ConfigError
from memxd.listening import Listening, open_listening

PEM = b"-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).write_bytes(PEM)
        (tmp_path / name).chmod(0o600)
    return {"certificate": str(tmp_path / "cert"), "key": str(tmp_path / "key"), "client_ca": str(tmp_path / "ca")}


def opened(listen: str, auth: str = "off", **files: str) -> Listening | None:
    return open_listening(listen, auth=auth, **({"certificate": "", "key": "", "client_ca": ""} | files))


def test_nothing_is_opened_by_default(files: dict[str, str]) -> None:
    assert opened("") is None
    assert opened("", "token", **files) is None


@pytest.mark.parametrize(
    ("listen", "auth", "given", "word"),
    [
        ("127.0.0.1:7077", "off", (), 'set auth = "token"'),
        ("localhost:7077", "off", (), 'set auth = "token"'),
        ("0.0.0.0:7077", "off", (), "set tls_cert"),
        ("0.0.0.0:7077", "token", (), "set tls_cert"),
        ("[::]:7077", "token", (), "set tls_cert"),
        ("192.168.1.7:7077", "token", (), "set tls_cert"),
        ("box.example:7077", "token", (), "set tls_cert"),
        ("127.0.0.1:7077", "off", ("certificate", "key"), "set tls_client_ca"),
        ("0.0.0.0:7077", "off", ("certificate", "key"), "set tls_client_ca"),
        ("0.0.0.0:7077", "token", ("certificate",), "set both"),
        ("0.0.0.0:7077", "token", ("key",), "set both"),
        ("127.0.0.1:7077", "token", ("client_ca",), "set tls_cert and tls_key"),
    ],
)
def test_what_would_be_open_is_refused_with_what_to_set(
    files: dict[str, str], listen: str, auth: str, given: tuple[str, ...], word: str
) -> None:
    with pytest.raises(ConfigError, match="listen") as caught:
        opened(listen, auth, **{name: files[name] for name in given})
    assert word in caught.value.message
    assert caught.value.exit_code == 78


@pytest.mark.parametrize(
    ("listen", "auth", "given"),
    [
        ("127.0.0.1:7077", "token", ()),
        ("[::1]:7077", "token", ()),
        ("0.0.0.0:7077", "token", ("certificate", "key")),
        ("0.0.0.0:7077", "off", ("certificate", "key", "client_ca")),
        ("0.0.0.0:7077", "token", ("certificate", "key", "client_ca")),
    ],
)
def test_what_is_closed_to_strangers_is_opened(
    files: dict[str, str], listen: str, auth: str, given: tuple[str, ...]
) -> None:
    found = opened(listen, auth, **{name: files[name] for name in given})
    assert found is not None
    assert found.address == listen
    assert bool(found.certificate) == ("certificate" in given)
    assert bool(found.client_ca) == ("client_ca" in given)
    assert "key=" not in repr(found)


def test_a_key_that_others_can_read_is_refused(files: dict[str, str]) -> None:
    Path(files["key"]).chmod(0o640)
    with pytest.raises(ConfigError, match=r"tls_key: others can use .* chmod 600"):
        opened("0.0.0.0:7077", "token", **files)


def test_files_that_are_missing_or_no_pem_are_named(files: dict[str, str]) -> None:
    Path(files["certificate"]).write_text("hello")
    with pytest.raises(ConfigError, match=r"tls_cert: .* holds no PEM"):
        opened("0.0.0.0:7077", "token", **files)
    Path(files["certificate"]).unlink()
    with pytest.raises(ConfigError, match="tls_cert: cannot read"):
        opened("0.0.0.0:7077", "token", **files)


@pytest.mark.parametrize(
    "text",
    ["7077", ":7077", "host", "host:", "host:0", "host:65536", "host:-1", "host:+1", "host:1.0", "host:٣",
     "::1:7077", "[::g]:7077", "unix:/tmp/x:1", "a b:1", "user@host:1", "a%b:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        split_address(text)
    with pytest.raises(ConfigError, match="must be host:port"):
        opened(text, "token")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("127.0.0.1.example", False), ("LOCALHOST.example", False)],
)  # fmt: skip
def test_only_the_loopback_addresses_are_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected

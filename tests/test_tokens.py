"""Tokens at rest: random, hashed, private, replaced in one step, and found only by the whole secret."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from memxd import tokens
from memxd.errors import ConfigError, InvalidArgumentError
from memxd.tokens import TokenFile, find

NOW = 1_700_000_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path)


def test_no_file_is_no_token(file: TokenFile) -> None:
    assert file.read() == {}
    assert not file.path.exists()


def test_a_secret_has_256_random_bits_and_is_not_kept(file: TokenFile) -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes([len(asked)] * count)

    token, secret = file.create(NOW, scope=("coder", "ada"), name="laptop", entropy=entropy)
    assert asked == [4, 32]
    assert secret == "mx_01010101_" + "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"
    stored = file.path.read_text()
    assert secret not in stored
    assert secret.rpartition("_")[2] not in stored
    assert token.hash in stored
    assert file.read() == {"01010101": token}
    assert "hash" not in token.public()


def test_the_file_is_the_users_alone_whatever_the_umask(file: TokenFile) -> None:
    before = os.umask(0)
    try:
        file.create(NOW, scope=None)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert sorted(p.name for p in file.path.parent.iterdir()) == ["tokens.json", "tokens.lock"]


def test_only_the_whole_secret_opens(file: TokenFile) -> None:
    token, secret = file.create(NOW, scope=("coder", "ada"))
    other, other_secret = file.create(NOW, scope=None)
    known = file.read()
    assert find(known, secret) == token
    assert find(known, other_secret) == other
    mixed = f"mx_{token.id}_{other_secret[12:]}"
    last = "A" if secret[-1] != "A" else "B"
    for wrong in ("", "mx_", secret[:-1], secret + "x", secret[:-1] + last, secret.upper(), mixed, " " + secret, "é"):
        assert find(known, wrong) is None, wrong


def test_what_is_compared_takes_as_long_for_an_unknown_id(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    token, secret = file.create(NOW, scope=None)
    compared: list[tuple[str, str]] = []
    real = tokens.hmac.compare_digest

    def spy(a: str, b: str) -> bool:
        compared.append((a, b))
        return bool(real(a, b))

    monkeypatch.setattr(tokens.hmac, "compare_digest", spy)
    for text in (secret, "mx_00000000_" + secret[12:], "nonsense"):
        find({token.id: token}, text)
    assert len(compared) == 3
    assert {len(each) for pair in compared for each in pair} == {64}


def test_a_token_ends_when_it_expires(file: TokenFile) -> None:
    token, _ = file.create(NOW, scope=None, expires_at=NOW + 5)
    assert not token.expired(NOW + 4)
    assert token.expired(NOW + 5)
    with pytest.raises(InvalidArgumentError, match="future"):
        file.create(NOW, scope=None, expires_at=NOW)


def test_a_revoked_token_is_gone(file: TokenFile) -> None:
    token, secret = file.create(NOW, scope=None)
    assert file.revoke(token.id) == token
    assert find(file.read(), secret) is None
    with pytest.raises(InvalidArgumentError, match="memx token list"):
        file.revoke(token.id)


def test_many_processes_at_once_lose_no_token(file: TokenFile) -> None:
    def create() -> None:
        TokenFile(file.path.parent).create(NOW, scope=None)

    threads = [threading.Thread(target=create) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(file.read()) == 12


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_can_use_proves_nothing(file: TokenFile, mode: int) -> None:
    file.create(NOW, scope=None)
    file.path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        file.read()


def test_a_link_is_not_followed(file: TokenFile, tmp_path: Path) -> None:
    file.create(NOW, scope=None)
    file.path.rename(tmp_path / "elsewhere")
    file.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        file.read()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_and_not_waited_for(file: TokenFile, kind: str) -> None:
    if kind == "folder":
        file.path.mkdir(mode=0o700)
    else:
        os.mkfifo(file.path, 0o600)
    with pytest.raises(ConfigError, match="not a file"):
        file.read()


def good() -> dict[str, object]:
    return {
        "id": "0a0a0a0a", "hash": "0" * 64, "created_at": NOW, "name": "", "admin": False,
        "agent_id": "coder", "user_id": "ada", "expires_at": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"admin": True}, {"agent_id": None}, {"user_id": ""}, {"hash": "0" * 63}, {"hash": None}, {"id": "x"},
        {"admin": 1}, {"created_at": "now"}, {"expires_at": "never"}, {"surprise": 1},
    ],
)  # fmt: skip
def test_an_entry_that_is_not_sound_makes_the_file_prove_nothing(file: TokenFile, change: dict[str, object]) -> None:
    file.path.touch(0o600)
    file.path.write_text(json.dumps({"format": "memxd-tokens", "version": 1, "tokens": [good()]}))
    assert len(file.read()) == 1
    file.path.write_text(json.dumps({"format": "memxd-tokens", "version": 1, "tokens": [good() | change]}))
    with pytest.raises(ConfigError, match="damaged"):
        file.read()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "memxd-tokens"}', "[" * 100_000, " " * 2**21])
def test_a_damaged_file_proves_nothing(file: TokenFile, text: str) -> None:
    file.path.touch(0o600)
    file.path.write_text(text)
    with pytest.raises(ConfigError, match="damaged"):
        file.read()


@pytest.mark.parametrize("name", ["x" * 65, "line\nbreak", "\x1b[31m"])
def test_names_are_short_and_printable(file: TokenFile, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="printable"):
        file.create(NOW, scope=None, name=name)

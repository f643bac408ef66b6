"""Tokens and backups: a backup holds none, and a restore brings none back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import casekit
from memxd.client import NO_RETRY, Client
from memxd.errors import UnauthenticatedError
from memxd.store import restoring
from memxd.tokens import TokenFile

NOW = 1_700_000_000_000_000


@pytest.fixture
def place() -> Iterator[casekit.World]:
    with casekit.world() as made:
        yield made


def test_a_restore_does_not_bring_a_revoked_token_back(place: casekit.World, tmp_path: Path) -> None:
    daemon = place.start("--auth", "token").daemon
    tokens = TokenFile(daemon.data_dir)
    kept, kept_secret = tokens.create(NOW, scope=None)
    revoked, revoked_secret = tokens.create(NOW, scope=("coder", "ada"))
    with Client(daemon.socket, token=kept_secret) as client:
        client.store("Ada likes tea.")
        list(client.backup(tmp_path / "copy"))
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["MANIFEST.json", "memxd.db"]
    written = b"".join(path.read_bytes() for path in (tmp_path / "copy").iterdir())
    for secret, token in ((kept_secret, kept), (revoked_secret, revoked)):
        assert secret.encode() not in written
        assert token.hash.encode() not in written
    tokens.revoke(revoked.id)
    assert daemon.stop() == 0
    restoring.restore(tmp_path / "copy", daemon.data_dir, NOW, move_aside=True)
    again = place.start("--auth", "token").daemon
    with Client(again.socket, token=kept_secret, retry=NO_RETRY) as client:
        assert client.count() == 1
    with Client(again.socket, token=revoked_secret, retry=NO_RETRY) as client, pytest.raises(UnauthenticatedError):
        client.count()


def test_on_another_machine_a_backup_opens_with_tokens_made_there(place: casekit.World, tmp_path: Path) -> None:
    daemon = place.start("--auth", "token").daemon
    _, secret = TokenFile(daemon.data_dir).create(NOW, scope=None)
    with Client(daemon.socket, token=secret) as client:
        client.store("Ada likes tea.")
        list(client.backup(tmp_path / "copy"))
    assert daemon.stop() == 0
    elsewhere = place.folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    restoring.restore(tmp_path / "copy", elsewhere, NOW, move_aside=False)
    other = place.start("--auth", "token", data_dir=elsewhere).daemon
    with Client(other.socket, token=secret, retry=NO_RETRY) as client, pytest.raises(UnauthenticatedError):
        client.count()
    _, made_there = TokenFile(elsewhere).create(NOW, scope=None)
    with Client(other.socket, token=made_there) as client:
        assert client.count() == 1


def test_a_token_file_that_proves_nothing_ends_the_start(place: casekit.World) -> None:
    place.data_dir.mkdir(mode=0o700)
    tokens = TokenFile(place.data_dir)
    tokens.create(NOW, scope=None)
    tokens.path.chmod(0o644)
    daemon = place.start("--auth", "token", wait=False).daemon
    assert daemon.wait() == 78
    assert "chmod 600" in daemon.log
    assert place.start().daemon.stop() == 0, "it is not looked at where no token is asked for"

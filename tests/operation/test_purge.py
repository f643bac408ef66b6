"""Deleting everything: only what is memxd's, only when nobody uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memxd.errors import AlreadyRunningError, ConfigError
from memxd.locks import FileLock
from memxd.operation.purge import purge


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "index" / "vector").mkdir(parents=True)
    (folder / "index" / "vector" / "a").write_text("x")
    for name in ("memxd.db", "memxd.db-wal", "memxd-data.lock"):
        (folder / name).write_text("")
    (folder / "before-restore-20260301T120000Z").mkdir()
    return folder


def test_all_of_it_goes(data: Path) -> None:
    assert purge(data)
    assert not data.exists()
    assert not purge(data)


def test_what_is_not_memxds_keeps_all_of_it(data: Path) -> None:
    (data / "thesis.txt").write_text("mine")
    before = sorted(data.rglob("*"))
    with pytest.raises(ConfigError, match=r"thesis\.txt"):
        purge(data)
    assert sorted(data.rglob("*")) == before


def test_a_link_inside_goes_and_its_target_stays(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("x")
    (data / "models").symlink_to(other)
    assert purge(data)
    assert (other / "precious").exists()


def test_a_link_in_its_place_is_refused(data: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(data)
    with pytest.raises(ConfigError, match="by hand"):
        purge(link)
    assert (data / "memxd.db").exists()


def test_it_waits_for_nobody_who_uses_it(data: Path) -> None:
    with FileLock(data / "memxd-data.lock", "the data"), pytest.raises(AlreadyRunningError):
        purge(data)
    assert (data / "memxd.db").exists()

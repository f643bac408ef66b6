"""The config file as memx writes and shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memxd.config import Config
from memxd.errors import ConfigError
from memxd.operation.config_file import parse_assignment, shown_settings, write_settings


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}


def test_written_values_are_read_back(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "sub" / "config.toml"
    values = {
        "workers": 3,
        "reflection": False,
        "half_life_days": 0.5,
        "openai_model": 'a"b\\\x7fé',
        "data_dir": tmp_path,
    }
    write_settings(path, values)
    config = Config.load({}, environ, path)
    assert {name: getattr(config, name) for name in values} == values
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\nworkers = 4 # four\n\nrrf_k = 61\n")
    write_settings(path, {"rrf_k": 70, "max_pending": 9})
    assert path.read_text() == "# mine\nworkers = 4 # four\n\nrrf_k = 70\nmax_pending = 9\n"


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot"):
        write_settings(tmp_path / "file" / "config.toml", {"workers": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workres=3", "did you mean workers"),
        ("workers", "write name=value"),
        ("workers=0", "1 to 256"),
        ("socket=/x", "MEMXD_SOCKET"),
    ],
)
def test_a_wrong_assignment_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_assignment(text)


def test_each_setting_says_where_it_comes_from_and_no_secret_is_shown(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    write_settings(path, {"workers": 3, "rrf_k": 61, "openai_key": "sk-secret"})
    rows = {row.name: row for row in shown_settings(environ | {"MEMXD_WORKERS": "5"}, path)}
    assert (rows["workers"].value, rows["workers"].origin) == ("5", "MEMXD_WORKERS")
    assert (rows["rrf_k"].value, rows["rrf_k"].origin) == ("61", str(path))
    assert rows["max_pending"].origin == "default"
    assert rows["openai_key"].value == "set"
    assert "sk-secret" not in repr(rows)

"""Settings: three sources in one order, every value checked, every unknown name refused with the nearest one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from memxd.config import BY_NAME, SETTINGS, Config, config_file, data_folder
from memxd.errors import ConfigError


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}


def test_defaults_need_no_source(environ: dict[str, str], tmp_path: Path) -> None:
    config = Config.load({}, environ)
    assert config.workers == 8
    assert config.data_dir == tmp_path / "data" / "memxd"
    assert config.socket.name == "memxd.sock"


def test_flags_win_over_environment_and_environment_over_file(environ: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", "workers = 3\nmax_pending = 30\nrrf_k = 61\n")
    environ |= {"MEMXD_WORKERS": "4", "MEMXD_MAX_PENDING": "40"}
    config = Config.load({"workers": 5, "max_pending": None}, environ, file)
    assert (config.workers, config.max_pending, config.rrf_k) == (5, 40, 61)


def test_the_default_file_is_read_when_it_exists(environ: dict[str, str]) -> None:
    assert not config_file(environ).exists()
    config_file(environ).parent.mkdir(parents=True)
    write(config_file(environ), "workers = 3\n")
    assert Config.load({}, environ).workers == 3


def test_the_file_can_be_named_in_the_environment(environ: dict[str, str], tmp_path: Path) -> None:
    environ["MEMXD_CONFIG"] = str(write(tmp_path / "c.toml", "workers = 3\n"))
    assert Config.load({}, environ).workers == 3


def test_a_named_file_must_exist(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        Config.load({}, environ, tmp_path / "none.toml")


def test_an_unknown_key_is_refused_with_the_nearest_name_and_the_file(environ: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", "workres = 3\n")
    with pytest.raises(ConfigError, match="did you mean workers") as caught:
        Config.load({}, environ, file)
    assert caught.value.metadata == {"key": "workres", "where": str(file)}


def test_an_unknown_variable_of_ours_is_refused_with_the_nearest_name(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"MEMXD_WORKRES.*did you mean MEMXD_WORKERS"):
        Config.load({}, environ | {"MEMXD_WORKRES": "3"})


def test_a_name_like_no_other_gets_no_suggestion(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="CONFIGURATION") as caught:
        Config.load({}, environ | {"MEMXD_FOO": "3"})
    assert "did you mean" not in str(caught.value)


def test_an_unknown_flag_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="did you mean workers"):
        Config.load({"workerz": 1}, environ)


BAD: list[tuple[str, object, str]] = [
    ("workers", 0, "1 to 256"),
    ("workers", 257, "1 to 256"),
    ("workers", "many", "1 to 256"),
    ("workers", 1.5, "1 to 256"),
    ("workers", True, "1 to 256"),
    ("max_pending", 0, "65,536"),
    ("drain_seconds", "nan", "3,600"),
    ("drain_seconds", float("inf"), "3,600"),
    ("drain_seconds", -1, "3,600"),
    ("log_level", "loud", "debug, info, warning, error"),
    ("kernels", "rust", "auto, c, py"),
    ("reflection", "maybe", "true or false"),
    ("time_zone", "Mars/Olympus", "IANA"),
    ("time_zone", "../../etc/passwd", "IANA"),
    ("openai_base_url", "ftp://example.org", "http"),
    ("model", "x" * 4_097, "4,096 characters"),
    ("data_dir", "", "a path"),
    ("bm25_b", 1.01, "0 to 1"),
    ("half_life_days", 0, "36,525 days"),
]


@pytest.mark.parametrize(("name", "value", "limit"), BAD, ids=[f"{n}={str(v)[:20]}" for n, v, _ in BAD])
def test_a_value_beyond_its_limit_is_refused_naming_key_and_limit(
    environ: dict[str, str], name: str, value: object, limit: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name} ") as caught:
        Config.load({name: value}, environ)
    assert limit in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("NO", False), ("off", False)])
def test_booleans_in_the_environment(environ: dict[str, str], text: str, value: bool) -> None:
    assert Config.load({}, environ | {"MEMXD_REFLECTION": text}).reflection is value


def test_an_empty_variable_counts_as_absent(environ: dict[str, str]) -> None:
    assert Config.load({}, environ | {"MEMXD_WORKERS": ""}).workers == 8


def test_a_file_that_others_can_write_is_refused(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        Config.load({}, environ, write(tmp_path / "c.toml", "workers = 3\n", 0o620))


def test_a_secret_in_a_readable_file_is_refused_and_not_shown(environ: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", 'openai_key = "sk-very-secret"\n', 0o644)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        Config.load({}, environ, file)
    assert "sk-very-secret" not in str(caught.value)
    file.chmod(0o600)
    config = Config.load({}, environ, file)
    assert config.openai_key == "sk-very-secret"
    assert config.public()["openai_key"] == "set"
    assert "sk-very-secret" not in repr(config)


def test_a_wrong_secret_is_not_shown(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({}, environ | {"MEMXD_OPENAI_KEY": "sk" * 4_000})
    assert "sksk" not in str(caught.value)


def test_the_socket_does_not_belong_in_the_file(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MEMXD_SOCKET"):
        Config.load({}, environ, write(tmp_path / "c.toml", 'socket = "/srv/m.sock"\n'))


def test_broken_toml_names_the_file(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.toml.*not valid TOML"):
        Config.load({}, environ, write(tmp_path / "c.toml", "workers = \n"))


def test_a_file_that_is_not_utf8_names_the_file(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(b"model = '\xff'\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"c\.toml.*not valid TOML"):
        Config.load({}, environ, file)


def test_every_field_is_a_setting_with_type_limit_and_help() -> None:
    assert [s.name for s in SETTINGS] == [f.name for f in dataclasses.fields(Config)]
    for setting in SETTINGS:
        assert setting.help.endswith(".")
        assert setting.limit
        assert setting.env == f"MEMXD_{setting.name.upper()}"
        if setting.default is not None:
            assert setting.parse(setting.default, "test") == setting.default
    assert BY_NAME["openai_key"].flag == ""


def test_relative_xdg_folders_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert data_folder({"XDG_DATA_HOME": "here"}).is_absolute()

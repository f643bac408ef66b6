"""The notations of the command line, the making harmless of text, and the one line of the config file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from memxd.cli import render, values
from memxd.errors import ConfigError
from memxd.operation.config_file import write_settings

#: Separators, marks, overrides, isolates, invisible operators, tag characters.
UNSEEN = (0x2028, 0x202E, 0x2066, 0x200E, 0x200F, 0x061C, 0x200B, 0x2064, 0xFEFF, 0xE0041)
NOW = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("7d", NOW - timedelta(days=7)),
        ("-7d", NOW - timedelta(days=7)),
        ("+30d", NOW + timedelta(days=30)),
        ("2w", NOW - timedelta(weeks=2)),
        ("90s", NOW - timedelta(seconds=90)),
        ("2026-05-01T10:00:00Z", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01T10:00:00.5+02:00", datetime(2026, 5, 1, 8, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_times_are_understood(text: str, expected: datetime) -> None:
    assert values.when(text, "--since", NOW) == expected


def test_a_bare_date_is_local_midnight() -> None:
    assert values.when("2026-05-01", "--since") == datetime(2026, 5, 1).astimezone()


@pytest.mark.parametrize("text", ["", "soon", "7", "7y", "2026-13-01", "99999999d", "999999w", "²d"])
def test_what_is_no_time_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        values.when(text, "--since", NOW)


def test_metadata_values_read_as_json_or_stay_text() -> None:
    found = values.metadata(["n=1", "t=true", "s=plain", 'q="1"', "e=", "eq=a=b", 'o={"x": [1]}', "nan=NaN"])
    assert found == {
        "n": 1, "t": True, "s": "plain", "q": "1", "e": "", "eq": "a=b", "o": {"x": [1]}, "nan": "NaN",
    }  # fmt: skip


@pytest.mark.parametrize("code", [0x00, 0x07, 0x08, 0x0D, 0x1B, 0x7F, 0x9B, *UNSEEN])
def test_what_a_terminal_would_act_upon_becomes_visible(code: int) -> None:
    shown = render.harmless(f"a{chr(code)}b")
    assert chr(code) not in shown
    assert f"{code:02x}" in shown


@pytest.mark.parametrize("code", [0x7F, 0x9B, *UNSEEN])
def test_json_for_a_terminal_says_the_same_without_them(code: int) -> None:
    document = json.dumps({"text": f"a{chr(code)}b"}, ensure_ascii=False)
    shown = render.harmless_json(document)
    assert chr(code) not in shown
    assert json.loads(shown) == json.loads(document)


def test_ordinary_text_is_left_alone() -> None:
    text = "Zürich 用户 👩‍👩‍👧 café\u0301\tx\ny"
    assert render.harmless(text) == text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "just now"), (59, "just now"), (61, "1 min ago"), (7200, "2 h ago"), (86400 * 3, "3 d ago"),
     (86400 * 400, "1 y ago"), (-7200, "in 2 h")],
)  # fmt: skip
def test_ages_are_rough(seconds: int, expected: str) -> None:
    assert render.age(int((NOW.timestamp() - seconds) * 1_000_000), NOW) == expected


def test_times_at_the_ends_of_the_calendar_are_shown() -> None:
    assert render.local(253_402_300_799_000_000).startswith("9999-12-31") or "Z" in render.local(
        253_402_300_799_000_000
    )
    assert render.local(-62_135_596_800_000_000)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'model = "new"\n'),
        ('workers = 4\nmodel = "old" # mine\n', 'workers = 4\nmodel = "new"\n'),
        ("# a note\nworkers = 4", '# a note\nworkers = 4\nmodel = "new"\n'),
        ('x = 1\n[t]\nmodel = "theirs"\n', 'x = 1\nmodel = "new"\n\n[t]\nmodel = "theirs"\n'),
    ],
)
def test_choosing_a_model_changes_one_line(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "sub" / "config.toml"
    path.parent.mkdir()
    path.write_text(before)
    write_settings(path, {"model": "new"})
    assert path.read_text() == after
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_broken_config_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("model = ")
    with pytest.raises(ConfigError, match="mend it first"):
        write_settings(path, {"model": "new"})
    assert path.read_text() == "model = "

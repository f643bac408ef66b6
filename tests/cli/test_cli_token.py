"""memx token: made once, shown once, listed without secrets, revoked at once; all of it on files alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Memx = Callable[..., Any]
SECRET = re.compile(r"mx_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def data(home: Path) -> Path:
    return home / "data" / "memxd"


def test_a_token_is_shown_once_and_kept_as_a_hash(memx: Memx, data: Path) -> None:
    made = memx("token", "create", "--scope-agent", "coder", "--scope-user", "ada", "--name", "laptop")
    assert made.code == 0
    assert SECRET.fullmatch(made.out.strip())
    assert "agent coder, user ada" in made.err
    assert 'auth = "token"' in made.err  # it is off, so this token is not asked for yet
    assert (data / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700
    listed = memx("token", "list")
    assert made.out.strip() not in listed.out + (data / "tokens.json").read_text()
    assert "laptop" in listed.out
    assert "agent coder, user ada" in listed.out
    assert "never" in listed.out


def test_as_json(memx: Memx) -> None:
    made = json.loads(memx("token", "create", "--admin", "--expires", "+30d", "--json").out)
    assert SECRET.fullmatch(made["token"])
    assert (made["admin"], made["agent_id"], made["user_id"]) == (True, None, None)
    [listed] = json.loads(memx("token", "list", "--json").out)["tokens"]
    assert listed == {name: value for name, value in made.items() if name != "token"} | {"expired": False}
    gone = json.loads(memx("token", "revoke", made["id"], "--json").out)
    assert gone["id"] == made["id"]
    assert json.loads(memx("token", "list", "--json").out) == {"tokens": []}


def test_into_a_file_of_mode_0600_and_not_over_another(memx: Memx, tmp_path: Path) -> None:
    file = tmp_path / "token"
    made = memx("token", "create", "--scope-user", "ada", "--to", str(file))
    assert made.code == 0
    assert SECRET.fullmatch(file.read_text().strip())
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() not in made.out + made.err
    again = memx("token", "create", "--scope-user", "ada", "--to", str(file))
    assert again.code == 2
    nowhere = memx("token", "create", "--scope-user", "ada", "--to", str(tmp_path / "no" / "token"))
    assert nowhere.code == 2
    assert len(json.loads(memx("token", "list", "--json").out)["tokens"]) == 1, "nobody knows the others: none is kept"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give either --admin"),
        (("--admin", "--scope-user", "ada"), "give either --admin"),
        (("--scope-user", " "), "must not be blank"),
        (("--scope-user", "x" * 129), "at most 128"),
        (("--scope-agent", "a\tb"), ""),
        (("--admin", "--expires", "7d"), "must lie in the future"),
        (("--admin", "--expires", "soon"), "is no time"),
        (("--admin", "--name", "x" * 65), "at most 64"),
    ],
)
def test_what_is_no_token_is_refused(memx: Memx, data: Path, words: tuple[str, ...], told: str) -> None:
    made = memx("token", "create", *words)
    assert made.code == 2
    assert told in made.err
    assert not (data / "tokens.json").exists()


def test_a_scope_is_kept_as_the_store_knows_it(memx: Memx) -> None:
    made = json.loads(memx("token", "create", "--scope-user", " Zoe\u0308 ", "--json").out)
    assert (made["agent_id"], made["user_id"]) == ("default", "Zo\u00eb")


def test_an_unknown_id_is_told(memx: Memx) -> None:
    gone = memx("token", "revoke", "00000000")
    assert gone.code == 2
    assert "memx token list" in gone.err


def test_no_secret_can_be_given_on_the_command_line(memx: Memx) -> None:
    """Others can read a command line in the list of processes."""
    assert memx("--token", "mx_x", "count").code == 2
    assert memx("count", "--token", "mx_x").code == 2


def test_a_secret_that_is_none_is_not_repeated(memx: Memx) -> None:
    refused = memx("count", env={"MEMX_TOKEN": "hunter2 is my password"})
    assert refused.code == 2
    assert "hunter2" not in refused.err
    assert "MEMX_TOKEN" in refused.err

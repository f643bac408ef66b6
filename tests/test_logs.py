"""Log lines: one form for people, one for machines, and never the text of an exception."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from memxd.logs import configure


@pytest.fixture(autouse=True)
def _keep_logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(form: str, stream: io.StringIO | None = None) -> str:
    stream = io.StringIO() if stream is None else stream
    configure("info", form, stream)
    logging.getLogger("memxd.test").info("stored %d", 3, extra={"fields": {"scope": "ab12", "why": "two words"}})
    return stream.getvalue()


def test_json_lines_parse_and_carry_the_fields() -> None:
    line = json.loads(written("json"))
    assert line["message"] == "stored 3"
    assert (line["level"], line["logger"], line["scope"]) == ("info", "memxd.test", "ab12")
    assert line["time"].endswith("Z")


def test_text_lines_are_for_people() -> None:
    assert 'memxd.test: stored 3 scope=ab12 why="two words"\n' in written("text")


def test_auto_is_text_on_a_terminal_and_json_elsewhere() -> None:
    assert written("auto").startswith("{")
    assert not written("auto", Terminal()).startswith("{")


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_text_of_an_exception_is_not_written(form: str) -> None:
    stream = io.StringIO()
    configure("info", form, stream)
    secret = "somebody's " + "secret"
    try:
        raise ValueError(secret)
    except ValueError:
        logging.getLogger("memxd.test").exception("failed")
    assert "ValueError" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()
    assert secret not in stream.getvalue()

"""The children that build and merge work on where a sandbox does not let them lower their priority."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memxd.index import vector
from memxd.index.lexical import worker


def _graph_builder() -> Callable[[], None]:
    """The script as the daemon runs it: by its path, without memxd."""
    spec = importlib.util.spec_from_file_location("graph_builder", Path(vector.__file__).with_name("build.py"))
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return lambda: script.step_back(5)


@pytest.mark.parametrize("child", [_graph_builder, lambda: worker._step_back], ids=["graph", "keyword"])
def test_a_refusal_is_told_in_one_line_and_goes_no_further(
    child: Callable[[], Callable[[], None]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    step_back = child()

    def refused(_: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refused)
    step_back()
    out, err = capfd.readouterr()
    assert out == ""  # that pipe is what the daemon reads answers from
    assert len(err.splitlines()) == 1
    assert "does not step back behind others: [Errno 1] Operation not permitted" in err

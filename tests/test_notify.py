"""The service manager hears that the daemon is ready and when it stops."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from memxd.notify import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_a_datagram_of_lines_is_sent(tmp_path: Path, abstract: bool) -> None:
    address = f"@memxd-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if abstract else address)
        manager.settimeout(5)
        assert notify(address, READY="1", STATUS="serving")
        assert manager.recv(100) == b"READY=1\nSTATUS=serving"


def test_without_a_manager_nothing_happens() -> None:
    assert not notify("", READY="1")


def test_a_manager_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert not notify(str(tmp_path / "gone"), READY="1")

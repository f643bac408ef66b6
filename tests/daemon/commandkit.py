"""``memx`` as a process, for the tests of a real daemon."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

Done = subprocess.CompletedProcess[str]


def memx(daemon: Any, environ: Mapping[str, str], *words: str, stdin: str = "") -> Done:
    """Run one command line to its end. ``daemon``: whose socket it is to use, starting none; None = its own choice."""
    command = [sys.executable, "-m", "memxd.cli", *words]
    if daemon is not None:
        command += ["--socket", str(daemon.socket), "--no-start"]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=dict(environ), timeout=90, check=False
    )

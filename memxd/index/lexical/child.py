"""The daemon's end of the pipe to the writing child process.

Owns starting, asking, and ending one ``worker``. One thread at a time may ask. Used by ``folding`` (which keeps a child
while there is work) and ``rebuilding``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import memxd
from memxd.index.lexical.worker import HEADER

_ROOT = Path(memxd.__file__).resolve().parent.parent
_PATIENCE = 10.0


class ChildError(Exception):
    """The child refused or died; nothing it had not answered counts. ``errno`` 0 = no matter of the disk; ``damaged``:
    it cannot go on from the files that lie there."""

    def __init__(self, message: str, errno: int = 0, damaged: bool = False) -> None:
        super().__init__(message)
        self.errno, self.damaged = errno, damaged


class Child:
    """A running worker for ``folder``. The thread that makes it must outlive it (the kernel ties it to that thread)."""

    def __init__(self, folder: Path, stamp: str) -> None:
        command = [sys.executable, "-m", "memxd.index.lexical.worker", str(folder.resolve()), stamp, str(os.getpid())]
        try:  # the working folder makes this very package importable there, installed or not
            self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise ChildError(f"the index writer does not start: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, request: dict[str, Any], payload: Sequence[bytes] = ()) -> dict[str, Any]:
        """Send a request and wait for its answer. Raises ChildError; the child is of no more use then."""
        header = json.dumps(request).encode()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(HEADER.pack(len(header), sum(map(len, payload))) + header)
            for part in payload:
                self._process.stdin.write(part)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError) as error:
            line = b""
            if not isinstance(error, BrokenPipeError):
                raise ChildError(f"the pipe to the index writer failed: {error}") from error
            line = self._process.stdout.readline()
        if not line:
            raise ChildError(f"the index writer died (exit status {self._process.wait(_PATIENCE)})")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise ChildError(answer["error"], answer["errno"], answer["damaged"])
        return answer

    def close(self) -> None:
        """End of work: the pipe is closed and the child joined; killed when it does not go."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # it died before; what it had not answered is sent again
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

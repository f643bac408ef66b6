"""The daemon's end of the pipe to the writing child process.

Owns starting, asking, and ending one ``worker``. One thread at a time may ask; any may ``kill``. Nobody waits for a
child for ever: while it works it gives a sign of life every second (``worker``), one that is silent for too long is
killed, and whoever asks may lose interest. Used by ``folding`` (which keeps a child while there is work) and
``rebuilding``.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import memxd
from memxd.index.lexical.worker import HEADER

_ROOT = Path(memxd.__file__).resolve().parent.parent
#: How long a child may take to end when its pipe is closed, in seconds.
_PATIENCE = 5.0
#: Many times what a child takes for importing its libraries, when it gives no sign of life yet.
SILENCE_SECONDS = 30.0
#: How often a waiting thread looks whether it is to give up, in milliseconds.
_GLANCE = 50
_PIECE = 1 << 16


class ChildError(Exception):
    """The child refused, died or was given up; nothing it had not answered counts. ``errno`` 0 = no matter of the disk;
    ``damaged``: it cannot go on from the files that lie there."""

    def __init__(self, message: str, errno: int = 0, damaged: bool = False) -> None:
        super().__init__(message)
        self.errno, self.damaged = errno, damaged


def _never() -> bool:
    return False


class Child:
    """A running worker for ``folder``. The thread that makes it must outlive it (the kernel ties it to that thread)."""

    def __init__(self, folder: Path, stamp: str) -> None:
        #: How long it may give no sign of life, in seconds.
        self.silence = SILENCE_SECONDS
        self._received = bytearray()
        command = [sys.executable, "-m", "memxd.index.lexical.worker", str(folder.resolve()), stamp, str(os.getpid())]
        try:  # the working folder makes this very package importable there, installed or not
            self._process = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise ChildError(f"the index writer does not start: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        os.set_blocking(self._to.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(
        self, request: dict[str, Any], payload: Sequence[bytes] = (), ended: Callable[[], bool] = _never
    ) -> dict[str, Any]:
        """Send a request and wait for its answer, until ``ended`` says True. Raises ChildError; the child is of no more
        use then."""
        self.tell(request, payload, ended)
        return self.answer(ended)

    def tell(self, request: dict[str, Any], payload: Sequence[bytes] = (), ended: Callable[[], bool] = _never) -> None:
        """The first half of ``ask``: the child works while its parent does something else. One request at a time."""
        header = json.dumps(request).encode()
        try:
            for part in (HEADER.pack(len(header), sum(map(len, payload))) + header, *payload):
                self._send(part, ended)
        except BrokenPipeError:
            pass  # it is gone; its last line says why
        except OSError as error:
            raise ChildError(f"the pipe to the index writer failed: {error.strerror}") from error

    def answer(self, ended: Callable[[], bool] = _never) -> dict[str, Any]:
        """The second half of ``ask``."""
        answer: dict[str, Any] = json.loads(self._line(ended))
        if not answer["ok"]:
            raise ChildError(answer["error"], answer["errno"], answer["damaged"])
        return answer

    def _send(self, part: bytes, ended: Callable[[], bool]) -> None:
        rest = memoryview(part)
        while rest:
            self._wait(self._to.fileno(), select.POLLOUT, ended)
            try:
                rest = rest[os.write(self._to.fileno(), rest[:_PIECE]) :]
            except BlockingIOError:
                continue  # room, but not for all of the piece

    def _line(self, ended: Callable[[], bool]) -> bytes:
        """The next line that says something; empty ones are signs of life."""
        while True:
            line, found, rest = self._received.partition(b"\n")
            if found:
                self._received = rest
                if line:
                    return bytes(line)
                continue
            self._wait(self._from.fileno(), select.POLLIN, ended)
            received = os.read(self._from.fileno(), _PIECE)
            if not received:
                raise ChildError(f"the index writer died (exit status {self._end()})")
            self._received += received

    def _wait(self, handle: int, event: int, ended: Callable[[], bool]) -> None:
        """Until the pipe is ready. Kills the child and raises ChildError when it is silent or nobody wants it."""
        poll = select.poll()
        poll.register(handle, event)
        until = time.monotonic() + self.silence
        while not poll.poll(_GLANCE):
            if ended():
                self.kill()
                raise ChildError("the index writer was ended before it was done")
            if time.monotonic() >= until:
                self.kill()
                raise ChildError(f"the index writer gave no sign of life for {self.silence:g} s and was ended")

    def close(self) -> None:
        """End of work: the pipe is closed and the child joined; killed when it does not go."""
        self._to.close()
        self._from.close()
        self._end()

    def _end(self) -> int:
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End it at once; its exit status."""
        self._process.kill()
        return self._process.wait()

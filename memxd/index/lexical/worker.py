"""The child process that writes the keyword index: ``python -m memxd.index.lexical.worker FOLDER STAMP``.

Owns the folder while it lives (one lock, held to the end) and does what its parent asks through the pipe, one request
at a time: fold a batch, merge, gather and analyse texts for a rebuild. Started by ``child``; never outlives it:
the end of the pipe, the parent's death and SIGKILL by the kernel each end it. Standard error goes to the parent's.

A request is ``HEADER`` (two sizes), a JSON header, a payload; an answer is one JSON line, with empty lines before it as
signs of life. After an error it says why and exits, so that no half-done state lives on.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from memxd.index.lexical.analyzer import document_terms
from memxd.index.lexical.files import lock
from memxd.index.lexical.postings import Gathered, unpack
from memxd.index.lexical.writer import IndexFolder

HEADER = struct.Struct("!IQ")
#: Texts gathered in memory before a rebuild writes them as a segment.
SEGMENT_POSTINGS = 4_000_000
_PR_SET_PDEATHSIG = 1
_PULSE_SECONDS = 1.0


class BusyFolderError(Exception):
    """Another process holds the folder's lock."""


class Worker:
    """Does requests on one folder."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._gathered = Gathered()

    def handle(self, request: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """The answer to one request. Raises what goes wrong."""
        deletes = request.get("deletes", {})
        match request["op"]:
            case "hello":
                return {}
            case "fold":
                self._folder.fold(unpack(payload) if payload else None, deletes, request["watermark"])
                return {}
            case "merge":
                return {"merged": self._folder.merge(deletes, request["erase"], request["tidy"])}
            case "texts":
                self._gather(json.loads(payload))
                return {}
            case "finish":
                self._write_gathered(request["watermark"])
                return {"merged": self._folder.merge({})}
        raise ValueError(f"unknown request {request['op']!r}")

    def _gather(self, rows: list[tuple[int, int, str]]) -> None:
        for rid, scope_no, text in rows:
            counts, length = document_terms(text)
            self._gathered.add(rid, counts, length, scope_no)
        if self._gathered.postings >= SEGMENT_POSTINGS:
            self._write_gathered(0)  # watermark 0: an unfinished rebuild counts for nothing

    def _write_gathered(self, watermark: int) -> None:
        self._folder.fold(self._gathered.source() if len(self._gathered) else None, {}, watermark)
        self._gathered = Gathered()


class Speaker:
    """The way back to the parent: answers, and a sign of life each second while a request is worked on.

    None while idle: nobody reads then, and the pipe would fill.
    """

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._working = threading.Event()
        threading.Thread(target=self._pulse, name="memxd-lexical-pulse", daemon=True).start()

    def begin(self) -> None:
        """A request has come."""
        self._working.set()

    def answer(self, fields: dict[str, Any]) -> None:
        """The request is done."""
        with self._lock:
            self._working.clear()
            self._sink.write(json.dumps(fields).encode() + b"\n")
            self._sink.flush()

    def _pulse(self) -> None:
        while True:
            self._working.wait()
            time.sleep(_PULSE_SECONDS)
            with self._lock:
                if self._working.is_set():
                    try:
                        self._sink.write(b"\n")
                        self._sink.flush()
                    except BrokenPipeError:
                        os._exit(1)  # nobody waits for this work any more


def serve(worker: Worker, source: BinaryIO, speaker: Speaker) -> None:
    """Answer requests until the pipe ends."""
    while head := source.read(HEADER.size):
        speaker.begin()
        size, payload = HEADER.unpack(head)
        request = json.loads(source.read(size))
        speaker.answer({"ok": True, **worker.handle(request, source.read(payload))})


def _die_with(parent: int) -> None:
    """End at once when the parent is gone: by the kernel on Linux, by watching elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="memxd-lexical-watch", daemon=True).start()


def _is_damage(error: Exception) -> bool:
    """Whether the files that lie there are to blame: whatever fails that is neither the disk's nor another writer's
    doing, since damaged files make Whoosh fail in any way."""
    return isinstance(error, FileNotFoundError) or not isinstance(error, OSError | BusyFolderError | MemoryError)


def _step_back() -> None:
    """Let others go first. A sandbox may refuse it: that is said in the daemon's log, and the work goes on."""
    try:
        os.nice(5)
    except OSError as error:
        print(f"memxd: the keyword index's writer does not step back behind others: {error}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """FOLDER STAMP PARENT; 0 = the pipe ended, 1 = an error was reported, 3 = the folder is taken."""
    folder, stamp, parent = Path(arguments[0]), arguments[1], int(arguments[2])
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    _step_back()
    speaker = Speaker(sys.stdout.buffer)
    try:
        held = lock(folder)
        if held is None:
            raise BusyFolderError("another process writes this index")
        serve(Worker(IndexFolder(folder, stamp)), sys.stdin.buffer, speaker)
    except Exception as error:
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", None) or 0}
        answer["damaged"] = _is_damage(error)
        speaker.answer(answer)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

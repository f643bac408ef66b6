"""What a run tells while it works: a bar on a terminal, plain lines when piped.

Owns the choice and the wording of progress; measures nothing. Everything goes to standard error, so that standard
output holds the report alone. rich is imported on a terminal only. One per run, made by the command line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

#: Seconds between two plain lines of one long work.
_EVERY = 10.0


class Step(Protocol):
    """What is told how far a work is."""

    def __call__(self, done: int) -> None: ...


class Progress:
    """``line`` for one sentence, ``work`` around something long. ``quiet`` tells nothing."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._terminal = not quiet and self._stream.isatty()

    def line(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            self._stream.write(text + "\n")
            self._stream.flush()

    @contextmanager
    def work(self, text: str, total: int) -> Iterator[Step]:
        """Around a work of ``total`` units; call what it gives with the units done so far."""
        if self._terminal:
            with self._bar(text, total) as step:
                yield step
        else:
            yield self._lines(text, total)

    @contextmanager
    def _bar(self, text: str, total: int) -> Iterator[Step]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bars(*columns, console=Console(file=self._stream), transient=True) as bars:
            task = bars.add_task(text, total=total)
            yield lambda done: bars.update(task, completed=done)

    def _lines(self, text: str, total: int) -> Step:
        began = last = time.monotonic()

        def step(done: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY or done >= total:
                last = now
                self.line(f"  {text}: {done:,} of {total:,} ({now - began:.0f} s)")

        return step

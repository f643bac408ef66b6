"""Long work whose progress a caller reads as it goes.

Owns the thread on which the work runs and the handing over of what it tells; when the caller stops reading, the work is
told so by its deadline and waited for. Called by the verbs that stream progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import TypeVar

from memxd.model import Deadline

T = TypeVar("T")


def told(name: str, work: Callable[[Callable[[T], None], Deadline], T], deadline: Deadline) -> Iterator[T]:
    """What ``work(tell, deadline)`` tells, then what it returns; raises what it raises.

    ``name`` is the thread's. The deadline given to the work also ends when nobody reads any more.
    """
    events: SimpleQueue[tuple[bool, T | BaseException]] = SimpleQueue()
    gone = threading.Event()
    until = replace(deadline, is_cancelled=lambda: gone.is_set() or deadline.is_cancelled())

    def run() -> None:
        try:
            events.put((True, work(lambda event: events.put((False, event)), until)))
        except BaseException as error:  # handed over to the reader below, whatever it is
            events.put((True, error))

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        last = False
        while not last:
            last, event = events.get()
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        gone.set()
        thread.join()

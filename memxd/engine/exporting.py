"""Export: a scope as lines (docs/FORMAT.md), in every state, while everything goes on.

Owns the order (header, memories by creation with their versions, links by id), the cutting into parts that fit a
message, and what is left out. Each page is read in a snapshot of its own, so that a reader who takes his time keeps no
log from being emptied; what changes meanwhile is exported as it is when its page is read. Called by the engine's face.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memxd.engine import validate
from memxd.engine.lines import header_line, link_line, memory_line, version_line
from memxd.model import NO_DEADLINE, Deadline, ExportStep, Scope
from memxd.store import BEGINNING, Place, Store, Whole

#: Memories and links read at once.
_PAGE = 100
#: A part is sent on when it has so many bytes; the largest line comes on top.
_PART_BYTES = 512 * 1024


class Exporting:
    """The verb ``export``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def export(
        self, scope: Scope, include_private: bool = False, vectors: bool = False, deadline: Deadline = NO_DEADLINE
    ) -> Iterator[ExportStep]:
        """Everything in the scope as lines, the last step ``finished``; ``vectors``: those of the memories as well.

        Private memories, and links to them, are left out unless asked for. Raises what ``Store.read`` raises.
        """
        clean = validate.scope(scope)
        number = self._store.scope_no(clean, deadline)
        yield ExportStep(header_line(clean), 0, 0)
        if number is None:
            yield ExportStep(b"", 0, 0, True)
            return
        with self._store.read(deadline) as read:
            total, private = read.export_total(number)
        left_out = 0 if include_private else private
        total -= left_out
        done, place = 0, BEGINNING
        while True:
            page, model_id = self._memories(number, place, include_private, vectors, deadline)
            if not page:
                break
            for part in _parts(self._lines(whole, model_id) for whole in page):
                yield ExportStep(part, done, max(total, done))
            done += len(page)
            place = Place(page[-1].memory.created_at, page[-1].memory.id)
        for part in self._links(number, place, include_private, deadline):
            yield ExportStep(part, done, done)
        yield ExportStep(b"", done, done, True, left_out)

    def _memories(
        self, number: int, place: Place, include_private: bool, vectors: bool, deadline: Deadline
    ) -> tuple[list[Whole], str]:
        """The next page, and the model that its vectors are of: of the same snapshot."""
        with self._store.read(deadline) as read:
            page = read.export_memories(number, place, _PAGE, private=include_private, vectors=vectors)
            return page, read.meta_get("model_id") or ""

    @staticmethod
    def _lines(whole: Whole, model_id: str) -> bytes:
        memory = whole.memory
        lines = [memory_line(memory, whole.chunks, model_id)]
        lines += [version_line(memory.id, n, version) for n, version in enumerate(whole.versions, start=1)]
        return b"".join(lines)

    def _links(self, number: int, upto: Place, include_private: bool, deadline: Deadline) -> Iterator[bytes]:
        after = ""
        while True:
            with self._store.read(deadline) as read:
                page = read.export_links(number, after, upto, _PAGE, private=include_private)
            if not page:
                return
            after = page[-1].id
            yield from _parts(link_line(link) for link in page)


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, put together until they are worth a message; one with a long history is cut at its lines."""
    part = bytearray()
    for piece in pieces:
        for line in piece.splitlines(keepends=True):
            part += line
            if len(part) >= _PART_BYTES:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)

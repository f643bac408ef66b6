"""The wire's own spelling, where going through Python objects would cost most: vectors, and items within a message.

Owns the few bytes of protobuf's encoding that this package writes itself. Everything else is built as messages. Called
by ``memories.py`` and ``pouring.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedScalarFieldContainer
    from google.protobuf.message import Message


def fill_floats(
    message: Message, number: int, field: RepeatedScalarFieldContainer[float], data: Iterable[float]
) -> None:
    """Fill the float ``field``, the one of this ``number`` in ``message``, which must be empty.

    A float32 array (NumPy, ``array.array``, any buffer of one dimension) is the field's own form on the wire and is
    taken as it is, at an eighth of the price of a list of floats. Raises TypeError for what holds no numbers.
    """
    if not isinstance(data, list | tuple):
        raw = _float32(data)
        if raw is not None:
            message.MergeFromString(_prefix(number, len(raw)) + raw)
            return
        data = data.tolist() if hasattr(data, "tolist") else data
    field.extend(data)


def _float32(data: Iterable[float]) -> bytes | None:
    """The bytes of a float32 array, little-endian; None when it is something else."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]  # whether it is a buffer is what is asked
    except TypeError:
        return None
    known = view.format == "f" and view.ndim == 1 and sys.byteorder == "little"
    return view.tobytes() if known else None


def joined(field: int, messages: Sequence[bytes]) -> bytes:
    """One message of serialised ones: the first, with the others in its repeated ``field``."""
    if len(messages) == 1:
        return messages[0]
    parts = [messages[0]]
    for each in messages[1:]:
        parts += (_prefix(field, len(each)), each)
    return b"".join(parts)


def _prefix(field: int, size: int) -> bytes:
    """What precedes ``size`` bytes of a field: its number with the wire type "length and bytes", and the length."""
    return _varint(field << 3 | 2) + _varint(size)


def _varint(number: int) -> bytes:
    """A whole number, not negative: seven bits a byte, the lowest first."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)

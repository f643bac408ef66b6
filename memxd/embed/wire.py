"""Protocol-buffer wire encoding, the four field kinds that our model files need.

Owns bytes of fields only; ``onnx_writer`` and ``sentencepiece_model`` know which number means what. Writing the few
messages by hand saves the ``onnx`` package and a protobuf dependency below the service layer.
Reference: the protocol buffers encoding guide (varint, I32 and LEN records).
"""

from __future__ import annotations

import struct

_VARINT, _LEN, _I32 = 0, 2, 5
_ONE_BYTE = 0x80
#: A vocabulary is a million tags and lengths; most are one byte.
_SMALL = tuple(bytes((number,)) for number in range(_ONE_BYTE))


def varint(number: int) -> bytes:
    """Base-128 bytes, lowest group first; negative numbers as their 64-bit two's complement."""
    if 0 <= number < _ONE_BYTE:
        return _SMALL[number]
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= _ONE_BYTE:
        out.append(number & (_ONE_BYTE - 1) | _ONE_BYTE)
        number >>= 7
    out.append(number)
    return bytes(out)


def int_field(field: int, value: int) -> bytes:
    """An int32, int64, bool or enum field."""
    return varint(field << 3 | _VARINT) + varint(value)


def float_field(field: int, value: float) -> bytes:
    """A 32-bit float field."""
    return varint(field << 3 | _I32) + struct.pack("<f", value)


def bytes_field(field: int, value: bytes) -> bytes:
    """A bytes or embedded message field."""
    return varint(field << 3 | _LEN) + varint(len(value)) + value


def text_field(field: int, value: str) -> bytes:
    """A string field."""
    return bytes_field(field, value.encode())

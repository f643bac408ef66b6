"""Protocol-buffer wire encoding, the four field kinds that our model files need.

Owns bytes of fields only; ``onnx_writer`` and ``sentencepiece_model`` know which number means what. Writing the few
messages by hand saves the ``onnx`` package and a protobuf dependency below the service layer.
Reference: the protocol buffers encoding guide (varint, I32 and LEN records).
"""

from __future__ import annotations

import struct

_VARINT, _LEN, _I32 = 0, 2, 5


def varint(number: int) -> bytes:
    """Base-128 bytes, lowest group first; negative numbers as their 64-bit two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
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

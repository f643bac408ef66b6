"""Bytes that are not what they claim to be: mutated requests, and garbage for the socket itself.

Owns the mutations of serialized messages and the conversations below gRPC (no HTTP/2, half an HTTP/2, requests whose
frames lie). Every function is a pure product of its random generator, except ``talk``. Judges nothing.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


def varint(number: int) -> bytes:
    """The protobuf encoding of a whole number below 2**64."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def unknown_fields(rng: random.Random) -> bytes:
    """Fields of numbers no message has, of every wire type."""
    number = rng.choice((1_000, 19_000, 2**29 - 1))
    return rng.choice(
        (
            varint(number << 3) + varint(rng.getrandbits(64)),
            varint(number << 3 | 1) + rng.randbytes(8),
            varint(number << 3 | 2) + varint(300) + rng.randbytes(300),
            varint(number << 3 | 5) + rng.randbytes(4),
            varint(number << 3 | 3) + varint(number << 3 | 4),
        )
    )


def too_deep(rng: random.Random) -> bytes:
    """Length-delimited field 4 (a Struct in NewMemory) in itself, far beyond what a parser follows."""
    body = b""
    for _ in range(rng.choice((99, 101, 300))):
        inner = b"\x0a\x01k\x12" + varint(len(body) + len(b"\x2a" + varint(len(body)))) + b"\x2a" + varint(len(body))
        body = b"\x0a" + varint(len(inner) + len(body)) + inner + body
    memory = b"\x0a\x01x\x22" + varint(len(body)) + body
    return b"\x12" + varint(len(memory)) + memory


def mutate(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    """``raw`` damaged in one to four ways; ``other`` is what a splice takes its piece from."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        which = rng.randrange(8)
        if which == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif which == 1:
            del data[at:]
        elif which == 2:
            piece = rng.randrange(len(other) + 1)
            data[at:at] = other[piece : piece + rng.randint(1, 60)]
        elif which == 3:
            data[at:at] = rng.randbytes(rng.randint(1, 12))
        elif which == 4:
            del data[at : at + rng.randint(1, 9)]
        elif which == 5:
            data[at:at] = data[at : at + rng.randint(1, 90)] * rng.randint(1, 30)
        elif which == 6:
            data[at:at] = b"\xff" * rng.randint(1, 11)
        else:
            data += unknown_fields(rng)
    return bytes(data)


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def _headers(path: bytes, extra: dict[bytes, bytes]) -> bytes:
    """Header fields as HPACK literals, neither indexed nor Huffman-coded."""
    fields = {b":method": b"POST", b":scheme": b"http", b":path": path, b":authority": b"localhost"}
    fields |= {b"te": b"trailers", b"content-type": b"application/grpc"} | extra
    return b"".join(b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in fields.items())


def _lying_request(rng: random.Random, path: bytes) -> bytes:
    """A gRPC request whose frames say something untrue."""
    extra = rng.choice(
        ({}, {b"grpc-timeout": b"99999999999H"}, {b"grpc-timeout": b"x"}, {b"grpc-encoding": b"gzip"},
         {b"x-bin": b"!!"}, {b"content-type": b"text/html"}, {b":path": b"/"}, {b":path": b""}, {b":method": b"GET"},
         {b"te": b""})
    )  # fmt: skip
    out = frame(1, 0x4 | rng.choice((0, 0x1)), 1, _headers(path, extra))
    claimed = rng.choice((0, 5, 100, 4 * 1024 * 1024, 2**32 - 1))
    body = bytes([rng.choice((0, 1, 7))]) + struct.pack(">I", claimed) + rng.randbytes(rng.choice((0, 5, 50)))
    out += frame(0, rng.choice((0, 0x1)), 1, body)
    if rng.random() < 0.5:
        out += frame(3, 0, 1, struct.pack(">I", rng.choice((0, 8, 99))))
    return out


def conversation(rng: random.Random, path: bytes) -> list[bytes]:
    """What one connection sends, piece by piece."""
    which = rng.randrange(7)
    if which == 0:
        return [rng.randbytes(rng.choice((1, 9, 24, 1_000, 70_000)))]
    if which == 1:
        return [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"]
    if which == 2:
        return [b"\x16\x03\x01\x02\x00\x01" + rng.randbytes(512)]
    if which == 3:
        return [PREFACE + SETTINGS, rng.randbytes(rng.choice((9, 100, 5_000)))]
    if which == 4:
        streams = (0, 1, 2, 2**31 - 1)
        frames = b"".join(
            frame(rng.randrange(12), rng.getrandbits(8), rng.choice(streams), rng.randbytes(rng.randrange(40)))
            for _ in range(20)
        )
        return [PREFACE + SETTINGS, frames]
    if which == 5:
        return [bytes([byte]) for byte in PREFACE[: rng.randrange(24)]]
    return [PREFACE + SETTINGS, _lying_request(rng, path)]


def talk(path: Path, pieces: list[bytes], pause: float, linger: float) -> None:
    """Send the pieces over a new connection with pauses, wait up to ``linger`` seconds for an answer, hang up."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(ConnectionError, TimeoutError):
        connection.settimeout(5)
        connection.connect(str(path))
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        if linger:
            connection.settimeout(linger)
            connection.recv(65_536)

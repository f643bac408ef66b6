"""The real clock and the real ids; tests inject their own.

Owns the only places where the present moment and randomness enter the engine. Called by the composition root.
"""

from __future__ import annotations

import os
import threading
import time

from memxd.model import IdFactory, Micros

#: Ids whose random bits are asked of the system at once.
_AHEAD = 128
#: The first digit of the random part: the variant's two bits and two of the digit's.
_VARIANT = {f"{digit:x}": f"{0b1000 | digit & 0b11:x}" for digit in range(16)}


def system_clock() -> Micros:
    """Now, in microseconds since 1970."""
    return time.time_ns() // 1_000


def uuid7_factory() -> IdFactory:
    """A maker of UUIDv7 (RFC 9562, section 5.7) that strictly ascend within the process.

    48 bits of milliseconds, 12 bits of the fraction of the millisecond (method 3 of section 6.2), 62 random bits. A
    clock that stands still or goes back cannot make two ids collide or descend: the last stamp is then counted on.
    """
    lock = threading.Lock()
    last = 0
    spare: list[str] = []

    def random_part() -> str:
        """The variant and 62 random bits as text; the bits are asked of the system for many ids at once."""
        if not spare:
            digits = os.urandom(8 * _AHEAD).hex()
            spare.extend(digits[at : at + 16] for at in range(0, len(digits), 16))
        random = spare.pop()
        return f"{_VARIANT[random[0]]}{random[1:4]}-{random[4:]}"

    def make(now: Micros) -> str:
        nonlocal last
        stamp = max(0, now) * 4096 // 1_000  # milliseconds with 12 bits of fraction
        with lock:
            stamp = last = max(stamp, last + 1)
            random = random_part()
        milliseconds = stamp >> 12 & 0xFFFF_FFFF_FFFF
        return f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-7{stamp & 0xFFF:03x}-{random}"

    return make

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
    spare: list[int] = []

    def random_bits() -> int:
        """62 random bits; asked of the system for many ids at once."""
        if not spare:
            bits = os.urandom(8 * _AHEAD)
            spare.extend(int.from_bytes(bits[at : at + 8], "little") >> 2 for at in range(0, len(bits), 8))
        return spare.pop()

    def make(now: Micros) -> str:
        nonlocal last
        stamp = max(0, now) * 4096 // 1_000  # milliseconds with 12 bits of fraction
        with lock:
            stamp = last = max(stamp, last + 1)
            random = random_bits()
        milliseconds, fraction = stamp >> 12, stamp & 0xFFF
        value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    return make

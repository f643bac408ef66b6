"""Random requests for every RPC, built by walking the message descriptors.

Owns what a field may be filled with: sensible values by its name (so that a request gets past validation and reaches
the engine), and boundary values by its type (every Unicode plane, NaN and infinities, far timestamps, deep Structs,
unknown enum numbers, long lists). A new field of the contract is fuzzed without a change here. Sends nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import struct
import uuid
from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor as d
from google.protobuf import message_factory
from google.protobuf.message import Message

from fuzz_pool import PLACES, Place, Pool

#: Put into texts; it must never come back in an error or a log line.
CANARY = "Qz7Canary9xK"
#: Fields that a later RPC of the same run may ask for again.
IDS = frozenset({"id", "source_id", "target_id", "start_id", "memory_id", "supersedes", "ids"})
MUTABLE = (
    "content", "type", "tags", "metadata", "importance", "event_at", "valid_until", "private", "source", "state",
)  # fmt: skip
WORDS = (
    "tea", "coffee", "Berlin", "東京", "meeting", "deadline", "JIRA-4711", "naïve", "привет", "2.3", "GB/s", "café",
    "not", "never", "😀", "v2.3", "milk", "ไทย",
)  # fmt: skip
ZONES = ("", "", "", "Europe/Berlin", "UTC", "America/New_York")
SPECIAL = (
    "", " ", "\0", "\0\0\0", "\u200b", "\ufeff", "\u202e\u2066", "'; DROP TABLE memories; --", '"$.a[0]"', "%s%n{0}",
    "../../etc/passwd",
    "/etc/passwd", "a" * 127, "a" * 128, "a" * 129, "e\u0301" * 64, "\u0f73" * 500, "\u1d160" * 40, "ﷺ" * 400,
    "<private>", "</private><private>", "\r\n\r\n", "\x1b[31m", "İıſK", "\U000e0001", "\ufffe\uffff",
    "NaN", "null", "{}", "a OR b* AND (",
)  # fmt: skip
FLOATS = (
    float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308,
    1.0, 0.0, -1.0, 1.0000000000000002, 2.0**53, 2.0**53 + 2, 2.0**63, 1e-300, 1_000.0, 0.1, 3.4e38, 1e-45,
)  # fmt: skip
INTS = (0, 1, -1, 2, 199, 200, 201, 500, 501, 999_999_999, 1_000_000_000, 2**31 - 1, -(2**31))
LONGS = (*INTS, 2**53, 2**63 - 1, -(2**63), 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801)
PLANES = (
    (0x01, 0x7F), (0x80, 0x2FF), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x8FF), (0x900, 0xFFF), (0x1100, 0x11FF),
    (0x2000, 0x206F), (0x3000, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF),
    (0xE0000, 0xE01EF), (0xF0000, 0x10FFFF),
)  # fmt: skip


class Generator:
    """Fills messages. ``wild`` is the share of fields that get a boundary value instead of a sensible one."""

    def __init__(self, rng: random.Random, pool: Pool) -> None:
        self.rng, self.pool = rng, pool
        self.wild = 0.0
        #: Bytes a message may still grow by: long lists of long texts must stay within the message limit.
        self._room = 0
        self._place: Place = PLACES[0]
        self._known = pool.ids

    def request(self, descriptor: d.Descriptor, wild: float) -> Message:
        """One message of this type."""
        self.wild, self._room = wild, 3_000_000
        self._place = self.rng.choices(PLACES, (6, 2, 1))[0]
        self._known = self.pool.link_ids if descriptor.name == "DeleteLinkRequest" else self.pool.ids
        return self._message(descriptor, 0)

    # -- messages --------------------------------------------------------------------------------------------------

    def _message(self, descriptor: d.Descriptor, depth: int) -> Message:
        message: Message = message_factory.GetMessageClass(descriptor)()
        special: Callable[[Any], None] | None = getattr(self, "_fill_" + descriptor.full_name.rpartition(".")[2], None)
        if special is not None:
            special(message)
            return message
        needed = depth == 0 or descriptor.name in ("NewMemory", "MemoryPatch", "Scope")
        for each in descriptor.fields:
            if self.rng.random() < (0.97 if needed and each.name in _NEEDED else 0.35) and self._room > 0:
                self._field(message, each, depth)
        if not self._is_wild():
            self._agree(message)
        return message

    def _field(self, message: Message, each: d.FieldDescriptor, depth: int) -> None:
        inner = each.message_type is message.DESCRIPTOR  # items within an item; deeper ones say nothing new
        if inner and depth > 1:
            return
        if each.is_repeated:
            into = getattr(message, each.name)
            for _ in range(min(self._length(), (300, 2)[depth]) if inner else self._length()):
                if self._room <= 0:
                    return
                if each.message_type is not None:
                    into.add().CopyFrom(self._message(each.message_type, depth + 1))
                else:
                    into.append(self._scalar(each))
        elif each.message_type is not None:
            getattr(message, each.name).CopyFrom(self._message(each.message_type, depth + 1))
        else:
            setattr(message, each.name, self._scalar(each))

    def _length(self) -> int:
        if self._is_wild():
            return self.rng.choice((0, 1, 2, 16, 17, 31, 32, 33, 100, 1_000, 1_001, 5_000))
        return self.rng.randint(1, 3)

    def _agree(self, message: Any) -> None:
        """What would make nearly every request refused, or the scope empty: most of it goes."""
        names = message.DESCRIPTOR.fields_by_name
        if "vector" in names and "model_id" in names:
            message.ClearField("vector")
            message.ClearField("model_id")
            if self.rng.random() < 0.15 and self.pool.dimension:
                message.vector.extend(self.rng.uniform(-1, 1) for _ in range(self.pool.dimension))
                message.model_id = self.pool.model_id
        if "as_of" in names and "filter" in names and message.HasField("as_of"):
            message.filter.ClearField("states")
        if "expected_revision" in names and self.rng.random() < 0.9:
            message.ClearField("expected_revision")
        if "dry_run" in names and self.rng.random() < 0.9:  # else there would soon be nothing left to attack
            message.dry_run = True
        if "state" in names and message.state == 2:
            message.state = 3
        if "half_life" in names and message.profile != 3:
            message.ClearField("alpha")

    # -- scalars -----------------------------------------------------------------------------------------------------

    def _is_wild(self) -> bool:
        return self.rng.random() < self.wild

    def _scalar(self, each: d.FieldDescriptor) -> Any:
        wild = self._is_wild()
        kind = each.cpp_type
        if each.type == d.FieldDescriptor.TYPE_BYTES:
            return self._lines(wild)
        if kind == d.FieldDescriptor.CPPTYPE_STRING:
            text = self._wild_text() if wild else self._text(each.name)
            self._room -= len(text.encode())
            return text
        self._room -= 12
        if kind == d.FieldDescriptor.CPPTYPE_BOOL:
            return self.rng.random() < 0.3
        if kind == d.FieldDescriptor.CPPTYPE_ENUM:
            known = [v.number for v in each.enum_type.values]
            return self.rng.choice((-1, 99, 2**31 - 1, -(2**31), 0)) if wild else self.rng.choice(known[1:])
        if kind in (d.FieldDescriptor.CPPTYPE_DOUBLE, d.FieldDescriptor.CPPTYPE_FLOAT):
            if not wild:
                return self.rng.random()
            value = self.rng.choice(FLOATS)
            single = kind == d.FieldDescriptor.CPPTYPE_FLOAT
            return struct.unpack("<f", struct.pack("<f", value))[0] if single and abs(value) < 3.4e38 else value
        if kind == d.FieldDescriptor.CPPTYPE_INT32:
            return self.rng.choice(INTS) if wild else self.rng.randint(1, 3)
        return self.rng.choice(LONGS) if wild else self.rng.randint(1, 2_000)

    def _text(self, name: str) -> str:
        rng = self.rng
        if name in IDS:
            known = self.pool.foreign_ids if rng.random() < 0.1 else self._known.get(self._place, [])
            return rng.choice(known) if known and rng.random() < 0.97 else str(uuid.UUID(int=rng.getrandbits(128)))
        if name in ("agent_id", "user_id"):
            return self._place[name == "user_id"]
        if name == "page_token":
            return self._token()
        if name == "request_id":
            return rng.choice(("", "", "", "r1", "r2", f"r{rng.getrandbits(64)}"))
        if name == "directory":
            return f"{self.pool.folder}/copy-{rng.getrandbits(64):x}" if rng.random() < 0.7 else "relative"
        if name == "time_zone":
            return rng.choice(ZONES)
        if name == "paths":
            return rng.choice(MUTABLE)
        if name in ("content", "query"):
            words = [*rng.choices(WORDS, k=rng.randint(1, 12)), CANARY, str(rng.randrange(1_000))]
            return " ".join(words)
        return rng.choice(WORDS) + (CANARY if rng.random() < 0.5 else "")

    def _lines(self, wild: bool) -> bytes:
        """Lines of an export, whole, damaged or none at all."""
        rng = self.rng
        lines = []
        for _ in range(rng.randint(1, 5)):
            fields = {"kind": rng.choice(("memory", "memory", "version", "link", "poem"))}
            fields |= {name: self._text(name) for name in ("id", "memory_id", "content", "source_id", "target_id")}
            line = json.dumps(fields | {"created_at": "2026-01-01T00:00:00Z", "number": 1}).encode()
            if fields["kind"] == "memory":
                kept = {name: fields[name] for name in ("kind", "id", "content")}
                line = json.dumps(kept | {"created_at": "2026-01-01T00:00:00Z"}).encode()
            lines.append(line[: rng.randrange(len(line))] + rng.randbytes(3) if wild else line)
        self._room -= sum(map(len, lines))
        return b"\n".join(lines)

    def _token(self) -> str:
        """None, a true one, or a true one whose cursor is forged under a right checksum."""
        if not self.pool.tokens or self.rng.random() < 0.3:
            return ""
        token = self.rng.choice(self.pool.tokens)
        if self.rng.random() < 0.6:
            return token
        body = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[4:])
        forged: list[Any] = [10**30, -(10**30), 1e308, float("nan"), float("inf"), "", CANARY, None, [], {}, True, 0]
        body[2] = self.rng.choice((body[2], [self.rng.choice(forged), self.rng.choice(forged)], "x", [], {}, None))
        if isinstance(body[2], list) and body[2]:
            body[2][self.rng.randrange(len(body[2]))] = self.rng.choice(forged)
        raw = json.dumps(body, separators=(",", ":")).encode()
        if self.rng.random() < 0.1:
            raw = b"[" * 100_000
        return base64.urlsafe_b64encode(hashlib.blake2b(raw, digest_size=4).digest() + raw).decode().rstrip("=")

    def _wild_text(self) -> str:
        rng = self.rng
        which = rng.random()
        if which < 0.3:
            text = rng.choice(SPECIAL)
        elif which < 0.9:
            low, high = rng.choice(PLANES)
            text = "".join(chr(rng.randint(low, high)) for _ in range(rng.choice((1, 3, 20, 65, 129, 400))))
            text = text.encode("utf-8", "ignore").decode()
        else:
            size = min(rng.choice((2_000, 2_001, 65_536, 65_537, 400_000)), max(1, self._room // 4))
            text = rng.choice(("x", "word ", "語", "😀", "e\u0301", "\u200d")) * size
            text = text[:size]
        return text + CANARY if rng.random() < 0.5 else text

    # -- well-known types -----------------------------------------------------------------------------------------

    def _fill_Timestamp(self, message: Any) -> None:
        if self._is_wild():
            message.seconds, message.nanos = self.rng.choice(LONGS), self.rng.choice(INTS)
        else:
            message.seconds, message.nanos = self.rng.randint(946_684_800, 1_900_000_000), self.rng.choice((0, 1, 999))

    def _fill_Duration(self, message: Any) -> None:
        if self._is_wild():
            message.seconds, message.nanos = self.rng.choice(LONGS), self.rng.choice(INTS)
        else:
            message.seconds = self.rng.randint(60, 10_000_000)

    def _fill_TimeRange(self, message: Any) -> None:
        self._fill_Timestamp(message.start)
        self._fill_Timestamp(message.end)
        if message.end.seconds < message.start.seconds and not self._is_wild():
            first = message.end.seconds
            message.end.seconds, message.start.seconds = message.start.seconds, first

    def _fill_Struct(self, message: Any) -> None:
        for _ in range(self.rng.choice((0, 1, 16, 17, 200)) if self._is_wild() else self.rng.randint(0, 3)):
            key = self._wild_text()[:2_000] if self._is_wild() else self._text("key")
            self._value(message.fields[key], 0)
        if self._is_wild():
            self._deep(message, self.rng.choice((5, 15, 30, 31, 32, 33, 45)))

    def _value(self, value: Any, depth: int) -> None:
        kind = self.rng.randrange(7 if self._is_wild() else 5)
        if kind == 0:
            value.string_value = self._wild_text() if self._is_wild() else self._text("value")
            self._room -= len(value.string_value)
        elif kind == 1:
            value.number_value = self.rng.choice(FLOATS) if self._is_wild() else self.rng.randint(-5, 5) / 2
        elif kind == 2:
            value.bool_value = self.rng.random() < 0.5
        elif kind == 3:
            value.null_value = 0
        elif kind == 4 and depth < 3:
            for _ in range(self.rng.randint(0, 2)):
                self._value(value.list_value.values.add(), depth + 1)
        elif kind == 5:
            value.struct_value.SetInParent()

    def _deep(self, message: Any, levels: int) -> None:
        for _ in range(levels):
            value = message.fields["d"]
            if self.rng.random() < 0.5:
                value = value.list_value.values.add()
            message = value.struct_value
        message.fields["end"].number_value = 1


#: Without these a request says nothing.
_NEEDED = frozenset(
    {"scope", "memory", "content", "query", "searches", "id", "source_id", "target_id", "start_id", "memory_id"}
    | {"update_mask", "paths", "agent_id", "user_id"}
)

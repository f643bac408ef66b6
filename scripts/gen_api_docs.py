"""Writes docs/API.md: the contract as a page, from the comments in proto/ and the error classes.

Owns the page's form, not a word of its content: meanings live in the proto's comments and the classes' docstrings,
so that the page cannot say anything else than the contract. ``python -m scripts.gen_api_docs`` writes; ``--check``
exits 1 when the committed page differs. ``make proto`` and the architecture tests call it.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from memxd import errors
from memxd.service.status import CODES
from scripts.gen_proto import ROOT, descriptor_set

PAGE = ROOT / "docs" / "API.md"
PACKAGE = ".memxd.v1."
# Field numbers of FileDescriptorProto and its parts, which a comment's path is made of.
FILE_MESSAGES, FILE_ENUMS, FILE_SERVICES = 4, 5, 6
PART_MEMBERS = 2  # a message's fields, an enum's values, a service's methods

HEAD = """# The API

Made from the comments in [proto/memxd/v1](../proto/memxd/v1) by `make proto`; change them, not this page.

memxd speaks gRPC over a Unix socket ([docs/SOCKET.md](SOCKET.md)). Package `memxd.v1`; the contract only grows:
fields are added, never renamed, renumbered or given another meaning. Besides the services below, the socket serves
`grpc.health.v1.Health` and, unless switched off, `grpc.reflection.v1.ServerReflection`.

**Absence.** A field marked *optional* tells "not set" from zero, and its comment says what absence means. Every
other scalar is zero when absent, and its comment says what zero means. An enum's zero is never a value of its own.
**Times** are instants (`google.protobuf.Timestamp`) at microsecond precision, from year 1 to year 9999; ranges are
half-open. **Characters** are Unicode code points after NFC. **Messages** are at most 4 MiB; answers stop at 3.5 MiB.
"""


class Comments:
    """Leading comments of one file by path."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._by_path = {tuple(loc.path): loc.leading_comments for loc in file.source_code_info.location}

    def at(self, *path: int) -> str:
        """The comment as one paragraph per blank-line-separated block."""
        blocks = re.split(r"\n\s*\n", self._by_path.get(path, "").strip())
        return "\n\n".join(" ".join(line.strip() for line in block.splitlines()) for block in blocks)


def type_name(field: FieldDescriptorProto) -> str:
    """A field's type without its label, linked when it is one of ours."""
    if field.type_name.startswith(PACKAGE):
        name = field.type_name.removeprefix(PACKAGE)
        return f"[{name}](#{name.lower()})"
    if field.type_name:
        return f"`{field.type_name.removeprefix('.')}`"
    return f"`{FieldDescriptorProto.Type.Name(field.type).removeprefix('TYPE_').lower()}`"


def map_entry(field: FieldDescriptorProto, message: DescriptorProto) -> DescriptorProto | None:
    """The entry type of a map field, or None."""
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith(f".{nested.name}"):
            return nested
    return None


def field_type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    """A field's type with its label."""
    entry = map_entry(field, message)
    if entry is not None:
        return f"map of {type_name(entry.field[0])} to {type_name(entry.field[1])}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {type_name(field)}"
    if field.proto3_optional:
        return f"optional {type_name(field)}"
    if field.HasField("oneof_index"):
        return f"{type_name(field)}, one of *{message.oneof_decl[field.oneof_index].name}*"
    return type_name(field)


def cell(text: str) -> str:
    """Text fit for a table cell."""
    return (
        text.replace("\n\n", "<br>").replace("|", "\\|").replace("<private>...</private>", "`<private>...</private>`")
    )


def signature(method: MethodDescriptorProto) -> str:
    """``Name(Request) returns (Response)`` with links."""

    def side(name: str, streams: bool) -> str:
        short = name.removeprefix(PACKAGE)
        return f"{'stream ' if streams else ''}[{short}](#{short.lower()})"

    asked = side(method.input_type, method.client_streaming)
    answered = side(method.output_type, method.server_streaming)
    return f"{asked} → {answered}"


def service_lines(service: ServiceDescriptorProto, number: int, comments: Comments) -> Iterator[str]:
    """One service: its comment and a table of its calls."""
    yield f"## {service.name}\n"
    yield comments.at(FILE_SERVICES, number) + "\n"
    yield "| call | request → answer | what it does |"
    yield "|---|---|---|"
    for position, method in enumerate(service.method):
        meaning = cell(comments.at(FILE_SERVICES, number, PART_MEMBERS, position))
        yield f"| `{method.name}` | {signature(method)} | {meaning} |"
    yield ""


def message_lines(message: DescriptorProto, number: int, comments: Comments) -> Iterator[str]:
    """One message: its comment and a table of its fields."""
    yield f"### {message.name}\n"
    yield comments.at(FILE_MESSAGES, number) + "\n"
    if not message.field:
        yield "No fields.\n"
        return
    yield "| # | field | type | meaning |"
    yield "|---|---|---|---|"
    for position, field in enumerate(message.field):
        meaning = cell(comments.at(FILE_MESSAGES, number, PART_MEMBERS, position))
        yield f"| {field.number} | `{field.name}` | {field_type(field, message)} | {meaning} |"
    yield ""


def enum_lines(enum: EnumDescriptorProto, number: int, comments: Comments) -> Iterator[str]:
    """One enum: its comment and a table of its values."""
    yield f"### {enum.name}\n"
    yield comments.at(FILE_ENUMS, number) + "\n"
    yield "| # | value | meaning |"
    yield "|---|---|---|"
    for position, value in enumerate(enum.value):
        yield f"| {value.number} | `{value.name}` | {cell(comments.at(FILE_ENUMS, number, PART_MEMBERS, position))} |"
    yield ""


def wire_code(kind: type[errors.MemxdError]) -> str:
    """The gRPC code of a class: its own line in the status table, or that of the nearest base."""
    return next(CODES[base].name for base in kind.__mro__ if base in CODES)


def error_lines() -> Iterator[str]:
    """Every refusal by reason, as the status table maps it."""
    yield "## Errors\n"
    yield (
        "Every refusal carries a `google.rpc.ErrorInfo` with domain `memxd`, a stable `reason` and further facts as "
        "`metadata`; invalid fields also come as `google.rpc.BadRequest` with the field's path. Match the reason, "
        "never the message: messages are for people and may change. What gRPC itself refuses (a message above "
        "4 MiB) carries a status code only. `DAEMON_UNREACHABLE` is what our clients raise when nothing answers.\n"
    )
    yield "| reason | gRPC code | retry may help | meaning |"
    yield "|---|---|---|---|"
    for reason, kind in errors.BY_REASON.items():
        if issubclass(kind, errors.StartupError):
            continue
        meaning = cell(" ".join((inspect.getdoc(kind) or "").split()).replace("``", "`"))
        yield f"| `{reason}` | `{wire_code(kind)}` | {'yes' if kind.retryable else 'no'} | {meaning} |"
    yield "\nAt start the daemon may refuse to serve; it then exits with a code of sysexits.h:\n"
    yield "| reason | exit code | meaning |"
    yield "|---|---|---|"
    for reason, kind in errors.BY_REASON.items():
        if issubclass(kind, errors.StartupError):
            meaning = cell(" ".join((inspect.getdoc(kind) or "").split()).replace("``", "`"))
            yield f"| `{reason}` | {kind.exit_code} | {meaning} |"
    yield ""


def page(contract: FileDescriptorSet) -> str:
    """The whole page: services, errors, messages, enums."""
    ours = [file for file in contract.file if f".{file.package}." == PACKAGE]
    parts = [(file, Comments(file)) for file in ours]
    lines = [HEAD]
    # The service an agent calls comes first.
    for file, comments in sorted(parts, key=lambda part: "admin" in part[0].name):
        for number, service in enumerate(file.service):
            lines += service_lines(service, number, comments)
    lines += error_lines()
    lines.append("## Messages\n")
    for file, comments in sorted(parts, key=lambda part: "admin" in part[0].name):
        for number, message in enumerate(file.message_type):
            lines += message_lines(message, number, comments)
    lines.append("## Enums\n")
    for file, comments in sorted(parts, key=lambda part: "admin" in part[0].name):
        for number, enum in enumerate(file.enum_type):
            lines += enum_lines(enum, number, comments)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when the page differs")
    made = page(descriptor_set())
    target: Path = PAGE
    if parser.parse_args().check:
        same = target.exists() and target.read_text(encoding="utf-8") == made
        if not same:
            print(f"{target.relative_to(ROOT)} is not what proto/ says; run `make proto`", file=sys.stderr)
        return 0 if same else 1
    target.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The verbs that move memories as lines of JSON: export and import (docs/FORMAT.md).

Owns their flags, the file that is written or read, and which scope a line goes to; the lines themselves are the
daemon's.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, dropwhile, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from memxd.cli.moving import shown
from memxd.cli.scope import Session, verb
from memxd.cli.words import ConflictWord, SystemWord
from memxd.errors import InvalidArgumentError

if TYPE_CHECKING:
    from memxd.client import Client
    from memxd.model import ImportStep

_MOST_SCOPES = 1_000
#: Exit code of an import that refused lines.
_REFUSED = 5
_SUMS = ("added", "unchanged", "replaced", "kept", "refused")
#: What a line is, by its first field, and what many of them are called.
_KIND = re.compile(rb'\s*\{\s*"kind"\s*:\s*"(\w{1,10})"')
_KINDS = {b"memory": "memories", b"version": "versions", b"link": "links"}


def register(app: typer.Typer) -> None:
    verb(app, "export")(export)
    verb(app, "import")(import_)


def export(
    session: Session,
    file: Annotated[str, typer.Argument(help="Where to; - = standard output.")] = "-",
    every_scope: Annotated[bool, typer.Option("--every-scope", help="Every scope, one after the other.")] = False,
    private: Annotated[bool, typer.Option("--include-private", help="Memories marked private as well.")] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Vectors as well.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write memories as lines of JSON, in every state, with ids, times, counts, versions and links."""
    kinds, left_out = _Kinds(), 0
    with _target(file, force) as out:
        for client in _scopes(session, every_scope):
            steps = client.export(include_private=private, vectors=vectors, timeout=session.settings.timeout)
            for step in shown(session.out, "exporting", steps) if file != "-" else steps:
                out.write(step.lines)
                kinds.count(step.lines.splitlines())
                if step.finished:
                    left_out += step.private_left_out
    if session.out.as_json and file != "-":
        session.out.json({"file": file, "lines": kinds.lines, **kinds.sums, "private_left_out": left_out})
        return
    session.out.note(f"{kinds} exported")
    if left_out:
        session.out.note(f"{left_out:,} private ones were left out; --include-private takes them along")


class _Kinds:
    """How many lines of which kind went by; export and import tell the same numbers of the same file."""

    def __init__(self) -> None:
        self.lines = 0
        self.sums = dict.fromkeys(_KINDS.values(), 0)

    def count(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.lines += 1
            found = _KIND.match(line)
            name = _KINDS.get(found[1]) if found else None
            if name is not None:
                self.sums[name] += 1

    def passing(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The same lines, counted as they go by."""
        for line in lines:
            self.count((line,))
            yield line

    def __str__(self) -> str:
        told = ", ".join(f"{number:,} {name}" for name, number in self.sums.items())
        return f"{self.lines:,} lines ({told})"


def _scopes(session: Session, every: bool) -> Iterator[Client]:
    if not every:
        yield session.client
        return
    found = session.client.status(max_scopes=_MOST_SCOPES).engine
    if found.scope_count > len(found.scopes):
        raise InvalidArgumentError.field("--every-scope", f"there are more than {_MOST_SCOPES:,}; name them one by one")
    for scope in sorted((scope for scope, _, _ in found.scopes), key=lambda s: (s.agent_id, s.user_id)):
        yield session.client.scope(agent_id=scope.agent_id, user_id=scope.user_id)


@contextmanager
def _target(file: str, force: bool) -> Iterator[BinaryIO]:
    """Standard output, or a file that only this user may read; it has its name once it is whole."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    if path.exists() and not force:
        raise InvalidArgumentError.field("file", f"{path} is there already; name another, or let --force write over it")
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unusable(error) from error


def _unusable(error: OSError) -> InvalidArgumentError:
    return InvalidArgumentError.field("file", f"cannot be used: {os.strerror(error.errno or 0)}")


def import_(
    session: Session,
    file: Annotated[str, typer.Argument(help="What `memx export` wrote; - = standard input.")],
    system: Annotated[SystemWord | None, typer.Option("--from", help="It is a file of another system.")] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Into the scope of --agent and --user, whatever the file says.")
    ] = False,
    on_conflict: Annotated[
        ConflictWord | None,
        typer.Option(help="What to do with an id that is taken by something else (refuse; with --from keep)."),
    ] = None,
    from_line: Annotated[int, typer.Option(min=1, help="Begin at this line, after a break.")] = 1,
) -> None:
    """Take over what was exported; the same file may come again."""
    refusals: list[Any] = []
    sums = dict.fromkeys(_SUMS, 0)
    lines, kinds = 0, _Kinds()
    # Times that another system does not tell are made up: what is there already stays.
    conflict = on_conflict or (ConflictWord.KEEP if system else None)
    with _source(file, system) as source:
        for client, first, part in _sections(session, source, here, from_line):
            last = None
            for step in client.import_lines(
                kinds.passing(part), on_conflict=conflict, first_line=first, timeout=session.settings.timeout
            ):
                last = step
                refusals += _told(session, step)
            if last is not None:
                lines = last.lines
                sums = {name: sums[name] + getattr(last, name) for name in _SUMS}
    if session.out.as_json:
        session.out.json({"lines": lines, **kinds.sums, **sums, "refusals": refusals})
    else:
        session.out.line(f"{kinds}: " + ", ".join(f"{sums[name]:,} {name}" for name in _SUMS))
    if refusals:
        raise typer.Exit(_REFUSED)


@contextmanager
def _source(file: str, system: SystemWord | None) -> Iterator[Iterable[bytes]]:
    """The lines of a file, of standard input, or of another system's file."""
    if system is not None:
        from memxd.cli import foreign

        if file == "-":
            raise InvalidArgumentError.field("file", "with --from it must be a file, not standard input")
        yield foreign.read(system, Path(file))
        return
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise _unusable(error) from error
    with opened:
        yield opened


def _told(session: Session, step: ImportStep) -> list[Any]:
    """The refusals of a step, each told in a line at once unless JSON is wanted."""
    if not session.out.as_json:
        for refusal in step.refusals:
            what = f" ({refusal.kind} {refusal.id})" if refusal.kind else ""
            session.out.note(f"line {refusal.line}{what}: {refusal.message} [{refusal.reason}]")
    return list(step.refusals)


def _sections(
    session: Session, source: Iterable[bytes], here: bool, from_line: int
) -> Iterator[tuple[Client, int, Iterator[bytes]]]:
    """The file's parts, one for each header: whose memory it is, the number of its first line, and the lines."""
    for _, numbered in groupby(_numbered(source), itemgetter(0)):
        every = map(itemgetter(1, 2), numbered)
        head = next(every)
        client = session.client
        if not here and (scope := _header_scope(head[1])) is not None:
            client = client.scope(agent_id=scope[0], user_id=scope[1])
        wanted = dropwhile(lambda each: each[0] < from_line, chain([head], every))
        first = next(wanted, None)
        if first is not None:
            yield client, first[0], chain([first[1]], (text for _, text in wanted))


def _numbered(source: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Each line with the number of its part and its own, from 1."""
    part = 0
    for number, line in enumerate(source, start=1):
        if _header_scope(line) is not None:
            part += 1
        yield part, number, line


def _header_scope(line: bytes) -> tuple[str, str] | None:
    """The scope that a header names; None for every other line."""
    if b'"header"' not in line[:64]:
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None  # the daemon says what is wrong with it
    if not isinstance(value, dict) or value.get("kind") != "header":
        return None
    agent, user = value.get("agent_id", "default"), value.get("user_id", "default")
    return (agent, user) if isinstance(agent, str) and isinstance(user, str) else None

"""The verbs about single memories: add, get, edit.

Owns their flags and what they print. ``scope.py`` gives them their session; the daemon checks the values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memxd.cli import values
from memxd.cli.render import moment
from memxd.cli.scope import Session, verb
from memxd.cli.undoing import pending
from memxd.cli.words import Clearable, StateWord, TypeWord

if TYPE_CHECKING:
    from memxd.model import Memory

_TIME = values.TIME_HELP


def register(app: typer.Typer) -> None:
    verb(app, "add")(add)
    verb(app, "get")(get)
    verb(app, "edit")(edit)


def show(session: Session, memory: Memory) -> None:
    """All of one memory: attributes, a blank line, the content."""
    out = session.out
    states = memory.state.name.lower() + (f" by {memory.superseded_by}" if memory.superseded_by else "")
    about = (("to be erased", pending(memory)), ("private", memory.private), ("vector pending", memory.vector_pending))
    flags = [word for word, on in about if on]
    meta = [
        (f"meta {key}", v if isinstance(v, str) else json.dumps(v, ensure_ascii=False))
        for key, v in memory.metadata.items()
    ]
    out.fields(
        [
            ("id", memory.id),
            ("scope", f"{memory.scope.agent_id} / {memory.scope.user_id}"),
            ("type", memory.type.name.lower()),
            ("state", ", ".join([states, *flags])),
            ("tags", ", ".join(memory.tags)),
            ("importance", f"{memory.importance:.2f}"),
            ("event", _maybe(memory.event_at)),
            ("valid until", _maybe(memory.valid_until)),
            ("source", memory.source),
            *meta,
            ("stored", moment(memory.created_at)),
            ("changed", moment(memory.updated_at) if memory.updated_at != memory.created_at else ""),
            ("read", _times(memory.access_count, memory.last_accessed_at)),
            ("found", _times(memory.retrieval_count, memory.last_retrieved_at)),
            ("revision", str(memory.revision)),
        ]
    )
    out.line()
    out.raw(memory.content)


def _maybe(micros: int | None) -> str:
    return "" if micros is None else moment(micros)


def _times(count: int, last: int | None) -> str:
    return f"{count} times, last {moment(last)}" if count else ""


def add(
    session: Session,
    content: Annotated[str | None, typer.Argument(help='The text; "-" or nothing reads standard input.')] = None,
    type: Annotated[TypeWord | None, typer.Option("--type", help="What kind of knowledge (default: semantic).")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A label; repeat for more.")] = None,
    meta: Annotated[list[str] | None, typer.Option("--meta", help="Metadata key=value; repeat for more.")] = None,
    importance: Annotated[float | None, typer.Option(help="How much it matters, 0..1 (default: 0.5).")] = None,
    event_at: Annotated[str | None, typer.Option(help=f"When it happened: {_TIME}.")] = None,
    valid_until: Annotated[str | None, typer.Option(help="From when on it no longer holds.")] = None,
    private: Annotated[bool, typer.Option("--private", help="It must never leave this machine.")] = False,
    source: Annotated[str, typer.Option(help="Where it came from.")] = "",
    supersedes: Annotated[list[str] | None, typer.Option(help="Id of a memory it replaces; repeat for more.")] = None,
    allow_duplicate: Annotated[bool, typer.Option("--allow-duplicate", help="Store it even if it is known.")] = False,
) -> None:
    """Store a memory.

    A memory with the same text, type, event time and source that is still active is not stored a second time: its id
    is printed instead.
    """
    answer = session.client.store(
        values.content(content),
        type=type,
        tags=tags or (),
        metadata=values.metadata(meta) if meta else None,
        importance=importance,
        event_at=values.maybe_when(event_at, "--event-at"),
        valid_until=values.maybe_when(valid_until, "--valid-until"),
        private=private,
        source=source,
        supersedes=supersedes or (),
        allow_duplicate=allow_duplicate,
    )
    if session.out.as_json:
        session.out.json(answer)
    else:
        session.out.line(answer.memory.id)
        if answer.deduplicated:
            session.out.note("known already: this is the existing memory (--allow-duplicate stores it again)")
        if answer.memory.vector_pending:
            session.out.note("found by its words for now; its vector follows")


def get(
    session: Session,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    content: Annotated[bool, typer.Option("--content", help="Print the text only.")] = False,
    no_access: Annotated[bool, typer.Option("--no-access", help="Do not count this as an access.")] = False,
) -> None:
    """Show one memory, in whatever state."""
    memory = session.client.get(id, record_access=not no_access)
    if session.out.as_json:
        session.out.json(memory)
    elif content:
        session.out.raw(memory.content)
    else:
        show(session, memory)


def edit(
    session: Session,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    content: Annotated[str | None, typer.Option(help='New text; "-" reads standard input.')] = None,
    type: Annotated[TypeWord | None, typer.Option("--type", help="What kind of knowledge.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Replaces all labels; repeat for more.")] = None,
    add_tags: Annotated[list[str] | None, typer.Option("--add-tag", help="A further label.")] = None,
    drop_tags: Annotated[list[str] | None, typer.Option("--drop-tag", help="A label to take away.")] = None,
    meta: Annotated[list[str] | None, typer.Option("--meta", help="Sets metadata key=value; the rest stays.")] = None,
    drop_meta: Annotated[list[str] | None, typer.Option("--drop-meta", help="A metadata key to take away.")] = None,
    importance: Annotated[float | None, typer.Option(help="How much it matters, 0..1.")] = None,
    event_at: Annotated[str | None, typer.Option(help=f"When it happened: {_TIME}.")] = None,
    valid_until: Annotated[str | None, typer.Option(help="From when on it no longer holds.")] = None,
    private: Annotated[bool | None, typer.Option("--private/--public", help="Whether it may leave.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it came from.")] = None,
    state: Annotated[StateWord | None, typer.Option(help="archived sets it aside, active brings it back.")] = None,
    clear: Annotated[list[Clearable] | None, typer.Option(help="A field to empty; repeat for more.")] = None,
    expected_revision: Annotated[int | None, typer.Option(help="Refuse when it has another revision.")] = None,
) -> None:
    """Change a memory: what is given changes, the rest stays."""
    given: dict[str, Any] = {
        "content": None if content is None else values.content(content, flag="--content"),
        "type": type,
        "tags": tags or None,
        "importance": importance,
        "event_at": values.maybe_when(event_at, "--event-at"),
        "valid_until": values.maybe_when(valid_until, "--valid-until"),
        "private": private,
        "source": source,
        "state": state,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    changes.update((name, None) for name in clear or ())
    if add_tags or drop_tags or meta or drop_meta:
        # Read, change, and write only if nobody else has changed it meanwhile.
        memory = session.client.get(id, record_access=False)
        expected_revision = memory.revision if expected_revision is None else expected_revision
        if add_tags or drop_tags:
            base = changes.get("tags", memory.tags) or ()
            changes["tags"] = [tag for tag in [*base, *(add_tags or ())] if tag not in (drop_tags or ())]
        if meta or drop_meta:
            kept = {} if "metadata" in changes else dict(memory.metadata)
            kept.update(values.metadata(meta or ()))
            changes["metadata"] = {key: value for key, value in kept.items() if key not in (drop_meta or ())}
    if not changes:
        raise typer.BadParameter("nothing to change; give at least one field")
    answer = session.client.update(id, **changes, expected_revision=expected_revision)
    if session.out.as_json:
        session.out.json(answer)
    else:
        session.out.line(f"{answer.memory.id} is now at revision {answer.memory.revision}")

"""The verbs about many memories at once: list and count.

Owns their flags and tables. Counts neither access nor retrieval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memxd.cli import values
from memxd.cli.render import Column, age, local, one_line
from memxd.cli.scope import Session, verb
from memxd.cli.undoing import pending
from memxd.cli.words import OrderWord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memxd.model import Memory

_COLUMNS = (
    Column("id", style="dim", beneath_below=100),
    Column("type", style="cyan", from_width=70),
    Column("when", from_width=150),
    Column("age", style="green"),
    Column("imp.", right=True, from_width=130),
    Column("tags", style="magenta", from_width=120),
    Column("content", grow=True),
)


#: Characters of a memory on one line of a list of a few.
_BRIEF = 60


def register(app: typer.Typer) -> None:
    verb(app, "list", filters=True)(list_memories)
    verb(app, "count", filters=True)(count)


def marked(memory: Memory) -> str:
    """The content, with the state before it unless that is active."""
    if memory.state == 1:
        return memory.content
    state = "to be erased" if pending(memory) else memory.state.name.lower()
    return f"[{state}] {memory.content}"


def brief(memory: Memory) -> str:
    """One line of it: id, day, the beginning of the content."""
    text = one_line(marked(memory))
    text = text if len(text) <= _BRIEF else text[: _BRIEF - 3] + "..."
    return f"{memory.id}  {local(memory.created_at)}  {text}"


def rows(memories: Iterable[Memory]) -> Iterable[tuple[str, ...]]:
    """The cells of ``_COLUMNS``."""
    for m in memories:
        at = m.created_at if m.event_at is None else m.event_at
        yield (
            m.id, m.type.name.lower(), local(at), age(at), f"{m.importance:.2f}", ", ".join(m.tags), marked(m),
        )  # fmt: skip


def list_memories(
    session: Session,
    order: Annotated[OrderWord | None, typer.Option(help="What comes first (default: the newest).")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="How many on the page, 1..500 (50).")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page; with --json one memory a line.")] = False,
    page_token: Annotated[str, typer.Option(help="Goes on where the page before ended.")] = "",
    as_of: Annotated[str | None, typer.Option(help="What was valid at this time.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Superseded memories as well.")] = False,
) -> None:
    """List memories, the newest first."""
    out, moment = session.out, values.maybe_when(as_of, "--as-of")
    if everything:
        memories = session.client.iter_list(
            filter=session.filter, order=order, page_size=limit, as_of=moment, include_superseded=superseded
        )
        if not out.as_json:
            out.table(_COLUMNS, rows(memories))
            return
        for memory in memories:
            out.json(memory, one_line=True)
        return
    page = session.client.list(
        filter=session.filter,
        order=order,
        page_size=limit,
        page_token=page_token,
        as_of=moment,
        include_superseded=superseded,
    )
    if out.as_json:
        out.json(page)
        return
    out.table(_COLUMNS, rows(page.memories))
    if page.next_page_token:
        # The token is long and opaque: for scripts, not for people.
        rest = "a larger --limit" if out.terminal else f"--page-token {page.next_page_token}"
        out.note(f"there are more: --all, or {rest}")


def count(
    session: Session,
    as_of: Annotated[str | None, typer.Option(help="What was valid at this time.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Superseded memories as well.")] = False,
) -> None:
    """Count memories."""
    number = session.client.count(
        session.filter, as_of=values.maybe_when(as_of, "--as-of"), include_superseded=superseded
    )
    if session.out.as_json:
        session.out.json({"count": number})
    else:
        session.out.line(str(number))

"""The verbs about links: link, unlink, links, related.

Owns their flags and tables.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memxd.cli import values
from memxd.cli.render import Column
from memxd.cli.scope import Session, verb
from memxd.cli.words import DirectionWord, LinkWord

_LINKS = (
    Column("id", style="dim", beneath_below=105, beneath="link "),
    Column("type", style="cyan"),
    Column("strength", right=True, style="green"),
    Column("", right=True),
    Column("other end", grow=True, fold=True),
)
_RELATED = (
    Column("depth", right=True, style="dim"),
    Column("strength", right=True, style="green"),
    Column("type", style="cyan", from_width=90),
    Column("id", style="dim", beneath_below=120),
    Column("content", grow=True),
)
Types = Annotated[list[LinkWord] | None, typer.Option("--type", help="Only this type; repeat for more.")]
Direction = Annotated[DirectionWord | None, typer.Option(help="Which way (default: both).")]
Strength = Annotated[float | None, typer.Option(help="At least this strong, 0..1.")]


def register(app: typer.Typer) -> None:
    verb(app, "link")(link)
    verb(app, "unlink")(unlink)
    verb(app, "links")(links)
    verb(app, "related")(related)


def link(
    session: Session,
    source: Annotated[str, typer.Argument(help="Id of the memory it starts from.")],
    type: Annotated[LinkWord, typer.Argument(help="How the first relates to the second.")],
    target: Annotated[str, typer.Argument(help="Id of the memory it points to.")],
    strength: Annotated[float | None, typer.Option(help="How strong, 0..1 (0.7).")] = None,
    both: Annotated[bool, typer.Option("--both", help="It holds both ways.")] = False,
    meta: Annotated[list[str] | None, typer.Option("--meta", help="Metadata key=value; repeat for more.")] = None,
) -> None:
    """Link two memories: memx link NEW supersedes OLD."""
    made = session.client.create_link(
        source,
        target,
        type,
        strength=strength,
        bidirectional=both,
        metadata=values.metadata(meta) if meta else None,
    )
    if session.out.as_json:
        session.out.json(made)
    else:
        session.out.line(made.id)


def unlink(session: Session, id: Annotated[str, typer.Argument(help="The link's id.")]) -> None:
    """Remove a link; removing a supersedes link brings its target back."""
    revision = session.client.delete_link(id)
    if session.out.as_json:
        session.out.json({"revision": revision})
    else:
        session.out.line("removed")


def links(
    session: Session,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    types: Types = None,
    direction: Direction = None,
    min_strength: Strength = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="How many at most, 1..500 (50).")] = None,
    page_token: Annotated[str, typer.Option(help="Goes on where the page before ended.")] = "",
) -> None:
    """List the links of a memory, the strongest first."""
    page = session.client.list_links(
        id,
        types=types or (),
        direction=direction,
        strength_min=min_strength,
        page_size=limit,
        page_token=page_token,
    )
    if session.out.as_json:
        session.out.json(page)
        return
    rows = []
    for item in page.links:
        outgoing = item.source_id == id.strip().lower()
        arrow = "<->" if item.bidirectional else "->" if outgoing else "<-"
        other = item.target_id if outgoing else item.source_id
        rows.append((item.id, item.type.name.lower(), f"{item.strength:.2f}", arrow, other))
    session.out.table(_LINKS, rows)
    if page.next_page_token:
        rest = "--limit shows more" if session.out.terminal else f"go on with --page-token {page.next_page_token}"
        session.out.note(f"{page.total} in all; {rest}")


def related(
    session: Session,
    id: Annotated[str, typer.Argument(help="Id of the memory to start from.")],
    depth: Annotated[int | None, typer.Option(help="How many steps at most, 1..6 (2).")] = None,
    nodes: Annotated[int | None, typer.Option(help="How many memories at most, 1..500 (50).")] = None,
    types: Types = None,
    direction: Direction = None,
    min_strength: Strength = None,
) -> None:
    """Walk the links outward from a memory."""
    walk = session.client.traverse(
        id, max_depth=depth, max_nodes=nodes, types=types or (), direction=direction, strength_min=min_strength
    )
    if session.out.as_json:
        session.out.json(walk)
        return
    session.out.table(
        _RELATED,
        [
            (str(m.depth), f"{m.path_strength:.2f}", m.memory.type.name.lower(), m.memory.id, m.memory.content)
            for m in walk.memories
        ],
    )
    if walk.truncated:
        session.out.note("there is more; raise --nodes")

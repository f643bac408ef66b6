"""The verb search: a question, its hits, and why each stands where it stands.

Owns its flags, the table of hits and the drawing of explanations. Exit code 1 when nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memxd.cli import values
from memxd.cli.listing import marked
from memxd.cli.render import Column, Output, age, local
from memxd.cli.scope import Session, verb
from memxd.cli.words import DedupWord, ModeWord, ProfileWord

if TYPE_CHECKING:
    from memxd.model import Explanation, Factor, Hit, SearchAnswer

_BAR = 20
_WHY = {
    "empty": "there is nothing in this scope (or nothing that the filter lets through)",
    "no_match": "no word in common and nothing near in meaning",
    "low_relevance": "even the best match is too unlikely to answer the question",
}
_COLUMNS = (
    Column("#", right=True, style="dim"),
    Column("score", right=True, style="bold"),
    Column("relevance", right=True, style="green"),
    Column("age", style="cyan", from_width=72),
    Column("type", from_width=100, beneath_below=120),
    Column("id", style="dim", beneath_below=120),
    Column("content", grow=True),
)


def register(app: typer.Typer) -> None:
    verb(app, "search", filters=True)(search)


def search(
    session: Session,
    query: Annotated[str | None, typer.Argument(help='The question in plain words; "-" reads standard input.')] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", help="How many hits at most, 1..200 (10).")] = None,
    mode: Annotated[ModeWord | None, typer.Option(help="Which legs look (default: hybrid).")] = None,
    profile: Annotated[ProfileWord | None, typer.Option(help="How hits are ranked (default: balanced).")] = None,
    dedup: Annotated[DedupWord | None, typer.Option(help="Which repetitions are folded.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Profile memex: share of cosine, 0..1.")] = None,
    no_reject: Annotated[bool, typer.Option("--no-reject", help="Show hits even when none is likely.")] = False,
    min_relevance: Annotated[float | None, typer.Option(help="Drop hits below this relevance, 0..1.")] = None,
    explain: Annotated[bool, typer.Option("--explain", "-x", help="Show why each hit stands where it stands.")] = False,
    no_trace: Annotated[bool, typer.Option("--no-trace", help="Do not count the hits as retrieved.")] = False,
    asked_at: Annotated[str | None, typer.Option(help=f"Ages count up to this time: {values.TIME_HELP}.")] = None,
    as_of: Annotated[str | None, typer.Option(help="What was valid at this time.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Superseded memories as well.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare with every vector.")] = False,
    expand: Annotated[int, typer.Option(help="Follow the hits' links this many steps, 0..3.")] = 0,
    timings: Annotated[bool, typer.Option("--timings", help="Show where the time went.")] = False,
) -> None:
    """Ask a question in plain words."""
    text = values.content(query, flag="QUERY").strip()
    if alpha is not None and profile != ProfileWord.MEMEX:
        raise typer.BadParameter("belongs to --profile memex; give that as well", param_hint="--alpha")
    from memxd.client import rank

    ranking = None
    if any(choice is not None for choice in (profile, dedup, alpha)) or no_reject:
        ranking = rank(profile, dedup=dedup, alpha=alpha, reject=False if no_reject else None)
    answer = session.client.search(
        text,
        k=k,
        filter=session.filter,
        mode=mode,
        ranking=ranking,
        min_relevance=min_relevance,
        explain=explain,
        record_retrieval=not no_trace,
        asked_at=values.maybe_when(asked_at, "--asked-at"),
        as_of=values.maybe_when(as_of, "--as-of"),
        include_superseded=superseded,
        exact=exact,
        expand_links=expand,
        timings=timings,
    )
    if session.out.as_json:
        session.out.json(answer)
    else:
        show(session.out, answer, explain=explain)
    if not answer.hits:
        raise typer.Exit(1)


def show(out: Output, answer: SearchAnswer, *, explain: bool) -> None:
    """The answer for people: hits, or that nothing is known; then what a reader should know."""
    if answer.hits and explain:
        for hit in answer.hits:
            _explained(out, hit)
        if answer.plan:
            out.line(answer.plan, "dim")
    elif answer.hits:
        out.table(_COLUMNS, [_row(hit) for hit in answer.hits])
    else:
        out.note(_nothing(answer))
    for degraded in answer.degraded:
        out.note(f"degraded ({degraded.cause.name.lower()}): {degraded.message}")
    if answer.folded:
        out.note(f"{answer.folded} folded as repetitions (--dedup off shows them)")
    if answer.timings:
        out.note(", ".join(f"{stage} {micros / 1000:.2f} ms" for stage, micros in answer.timings))


def _nothing(answer: SearchAnswer) -> str:
    if not answer.rejected:
        dropped = answer.below_min_relevance
        return f"Nothing left: {dropped} hits are below --min-relevance (best relevance {answer.best_relevance:.2f})."
    why = _WHY.get(answer.reject_reason.name.lower(), "") if answer.reject_reason else ""
    return f"Nothing known: {why} (best relevance {answer.best_relevance:.2f})."


def _when(hit: Hit) -> int:
    return hit.memory.created_at if hit.memory.event_at is None else hit.memory.event_at


def _row(hit: Hit) -> tuple[str, ...]:
    memory = hit.memory
    mark = "+" if hit.expanded else ""
    return (
        f"{mark}{hit.rank}", f"{hit.score:.3f}", f"{hit.relevance:.2f}", age(_when(hit)), memory.type.name.lower(),
        memory.id, marked(memory),
    )  # fmt: skip


def _explained(out: Output, hit: Hit) -> None:
    """One hit with its factors as bars."""
    memory, why = hit.memory, hit.explanation
    at = _when(hit)
    out.line(f"#{hit.rank}  score {hit.score:.3f}  relevance {hit.relevance:.2f}  {memory.id}", "bold")
    state = "" if memory.state == 1 else f", {memory.state.name.lower()}"
    out.line(f"    {memory.type.name.lower()}{state}, {local(at)} ({age(at)})", "cyan")
    for line in memory.content.splitlines()[:4]:
        out.line("    " + line[:400])
    if why is None:
        out.line(f"    reached by a link from {hit.expanded_from}", "dim")
    else:
        _factors(out, why)
    out.line()


def _factors(out: Output, why: Explanation) -> None:
    named = (
        ("semantic", why.semantic, "green"),
        ("recency", why.recency, "blue"),
        ("frequency", why.frequency, "yellow"),
        ("importance", why.importance, "magenta"),
    )
    for name, factor, style in named:
        out.line(
            f"    {name:<10} {bar(factor)} {factor.value:.3f} x {factor.weight:<5g} = {factor.contribution:.4f}", style
        )
    legs = [
        f"cosine {why.cosine:.3f}" if why.cosine is not None else "no cosine",
        f"vector rank {why.vector_rank}" if why.vector_rank else "not among the vector candidates",
        f"BM25 {why.keyword_score:.2f}" if why.keyword_score is not None else "no word in common",
        f"keyword rank {why.keyword_rank}" if why.keyword_rank else "not among the keyword candidates",
    ]
    out.line("    " + ", ".join(legs), "dim")
    out.line(f"    rrf {why.rrf:.5f}, raw {why.raw_score:.4f}, z {why.z_score:+.3f}", "dim")
    if why.terms:
        shown = ", ".join(f"{t.term} x{t.frequency} ({t.score:.2f})" for t in why.terms)
        out.line(f"    words: {shown}", "dim")
    if why.folded:
        out.line(f"    {why.folded} repetitions folded into it", "dim")
    for note in why.notes:
        out.line(f"    note: {note}", "dim")


def bar(factor: Factor) -> str:
    """The factor's value, 0..1, as a bar of fixed length."""
    full = round(min(1.0, max(0.0, factor.value)) * _BAR)
    return "█" * full + "·" * (_BAR - full)

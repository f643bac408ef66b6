"""A report as Markdown: the machine, the budgets table, the figures of each question.

Owns the wording and how numbers are rounded; computes nothing. ``main`` prints it and writes ``report.md``; the same
text goes between the markers of docs/PERFORMANCE.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memxd.bench.measure import Budget, Measurement
from memxd.bench.report import Change, Part, Report

_VERDICT = {True: "met", False: "**missed**", None: "not judged"}


def markdown(report: Report) -> str:
    """The whole report."""
    parts = [section for part in report.parts for section in _part(part)]
    return "\n".join([*_head(report), "", *budgets_table(report.budgets), "", *parts]).rstrip() + "\n"


def short(report: Report) -> list[str]:
    """What a run prints at its end: the budgets, and what was left out."""
    lines = budgets_table(report.budgets)
    skipped = [f"skipped in {part.question}: {text}" for part in report.parts for text in part.result.skipped]
    judged = [budget for budget in report.budgets if budget.met is not None]
    verdict = f"{len(judged) - len(report.missed)} of {len(judged)} judged budgets met"
    if others := len(report.budgets) - len(judged):
        verdict += f"; {others} not judged at these sizes"
    failed = [f"failed: {name}: {text}" for name, text in report.run["failed"].items()]
    return [*lines, *skipped, *failed, verdict]


def budgets_table(budgets: Sequence[Budget]) -> list[str]:
    """The table that says whether the promises are kept."""
    if not budgets:
        return ["No budgets were measured."]
    rows = [
        (
            budget.name,
            f"{budget.size:,}" if budget.size else "",
            amount(budget.measured, budget.unit),
            ("at least " if budget.at_least else "at most ") + amount(budget.budget, budget.unit),
            budget.peer,
            "" if budget.peer_figure is None else amount(budget.peer_figure, budget.unit),
            "" if budget.ratio is None else f"{number(budget.ratio)}x",
            _VERDICT[budget.met] + (f" ({budget.note})" if budget.note else ""),
        )
        for budget in budgets
    ]
    return table(("budget", "records", "measured", "allowed", "peer", "peer's figure", "better by", "verdict"), rows)


def _head(report: Report) -> list[str]:
    run, machine = report.run, report.machine
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    kind = "quick run, for function: its times mean nothing" if run["quick"] else "full run"
    lines = [
        f"{run['date']}, {kind}. Command: `{run['command']}`.",
        "",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['disk']}, "
        f"{machine['kernel']}, Python {machine['python']}, load at start {machine['load_at_start']}"
        + (f", revision {machine['revision']}." if machine["revision"] else "."),
        f"Texts: {run['texts']}. Vectors: {run['vectors']}. Model: {run['embedder']}. Kernels: {run['kernels']}.",
        f"Libraries: {libraries}.",
    ]
    busy = [part.question for part in report.parts if max(part.load) > machine["cores"] + 1]
    if busy:
        lines.append(f"The machine was busy with other work, or kept busy by the bench, during: {', '.join(busy)}.")
    lines += [f"**{name} failed**: {text}." for name, text in run["failed"].items()]
    revisions = dict.fromkeys(part.revision for part in report.parts)
    if len(revisions) > 1:
        of = {r: ", ".join(p.question for p in report.parts if p.revision == r) or "none" for r in revisions}
        lines.append("Measured at different revisions: " + "; ".join(f"{r or 'unknown'}: {of[r]}" for r in of) + ".")
    return lines


def _part(part: Part) -> list[str]:
    lines = [f"### {part.title}", ""]
    if part.result.measurements:
        lines += measurements_table(part.result.measurements)
        lines.append("")
    lines += [f"* {note}" for note in part.result.notes]
    lines += [f"* Skipped: {text}" for text in part.result.skipped]
    return [*lines, ""]


def measurements_table(rows: Iterable[Measurement]) -> list[str]:
    """Figures, one line each; single figures stand in the column of the median."""
    shown = []
    for m in rows:
        tail = [amount(v, m.unit) for v in (m.p90, m.p95, m.p99, m.min)] if m.n > 1 else [""] * 4
        extra = ", ".join(f"{name} {_plain(value)}" for name, value in m.extra.items())
        size = f"{m.size:,}" if m.size else ""
        shown.append((m.stage, size, m.variant, f"{m.n:,}", amount(m.p50, m.unit), *tail, extra))
    return table(("what", "records", "who", "n", "p50", "p90", "p95", "p99", "min", "more"), shown)


def changes_table(changes: Iterable[Change]) -> list[str]:
    """What ``memx bench compare`` prints."""
    rows = [
        (
            c.question,
            c.stage,
            f"{c.size:,}" if c.size else "",
            c.variant,
            amount(c.old, c.unit),
            amount(c.new, c.unit),
            f"{c.ratio:.2f}",
        )
        for c in changes
    ]
    return table(("question", "what", "records", "who", "old", "new", "new / old"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines]


def amount(value: float, unit: str) -> str:
    """With its unit, three significant digits."""
    if unit == "share":
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if unit == "count":
        return number(value)
    return f"{number(value)} {unit}"


def number(value: float) -> str:
    """Three significant digits, thousands with commas."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plain(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)

"""A report as pictures: latency by percentile, by size, by stage, recall against time, throughput by clients.

Owns the look (one palette, memxd first and bold, peers beside it) and the page that shows all pictures; draws what the
report holds and leaves out what it does not. matplotlib is imported here alone. Called by ``main`` and ``docs``.

What a question must hand over: ``latency against size`` and ``percentiles`` come from measurements in ms or us with
n > 1; stages from measurements whose ``extra`` has ``share_of`` (the whole's stage); ``Result.curves`` may hold
``recall``, {variant: [[recall, milliseconds, label]...]}, and ``clients``, {variant: [[clients, calls a second]...]}.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from memxd.bench.measure import Measurement
from memxd.bench.report import Part, Report, write

#: File name without ending, title, picture.
Picture = tuple[str, str, Figure]
_OURS, _INK, _GRID = "#0b6e4f", "#22303c", "#d9dee3"
_PEERS = ("#c8553d", "#3d6fb4", "#b08900", "#7b4f9d", "#5f7480", "#a23b72")
_KNOWN = dict(zip(("tantivy", "bm25s", "sqlite fts5", "whoosh", "numpy", "python twin"), _PEERS, strict=True))
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": _GRID,
    "grid.linewidth": 0.7,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "text.color": _INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "memxd",
}
_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3}


def page(report: Report, out: Path) -> Path:
    """Draw every picture into ``out``/plots as PNG, and ``out``/report.html that shows them; answers the page."""
    folder = out / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    shown = "\n".join(
        f'<figure><img src="plots/{path.name}" alt="{html.escape(title)}"></figure>'
        for path, title in draw(report, folder, "png")
    )
    style = "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;color:#22303c}img{max-width:100%}"
    machine = html.escape(f"{report.machine['cpu']}, {report.machine['cores']} cores, {report.run['date']}")
    text = f'<!doctype html><meta charset="utf-8"><title>memxd, speed</title><style>{style}</style>'
    target = out / "report.html"
    write(target, f"{text}<h1>memxd: speed</h1><p>{machine}. Figures: report.md, report.json.</p>{shown}\n")
    return target


def draw(report: Report, folder: Path, kind: str, *, chief: bool = False) -> list[tuple[Path, str]]:
    """Draw into ``folder`` as files of ``kind`` (png, svg); (file, title) of each.

    ``chief``: the few of each question that tell most, for a page that is committed.
    """
    made = []
    with mpl.rc_context(_STYLE):
        for name, title, figure in _chief(_figures(report)) if chief else _figures(report):
            path = folder / f"{name}.{kind}"
            figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Date": None} if kind == "svg" else None)
            if kind == "svg":  # readers without the font take a like one
                text = path.read_text(encoding="utf-8")
                write(path, text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif"))
            made.append((path, title))
    return made


def _chief(figures: Iterator[Picture]) -> Iterator[Picture]:
    """Growth with size, stages, recall, clients; percentiles of a question that has none of them. The first of each."""
    by_question: dict[str, list[Picture]] = defaultdict(list)
    for picture in figures:
        if not picture[0][-1].isdecimal() or picture[0].endswith("-0"):
            by_question[picture[0].partition("-")[0]].append(picture)
    for pictures in by_question.values():
        telling = [picture for picture in pictures if "-percentiles-" not in picture[0]]
        yield from telling or pictures


def _figures(report: Report) -> Iterator[Picture]:
    """Every picture that the report has figures for."""
    for part in report.parts:
        rows = [m for m in part.result.measurements if m.unit in _MS and m.n > 1 and "share_of" not in m.extra]
        for number, (stage, size, group) in enumerate(_comparable(rows)):
            title = f"{part.title}: {stage}" + (f", {size:,} records" if size else "")
            yield f"{part.question}-percentiles-{number}", title, _percentiles(title, group)
        for number, (stage, grown) in enumerate(_by_size(rows)):
            title = f"{part.title}: {stage}, against store size"
            yield f"{part.question}-sizes-{number}", title, _sizes(title, grown)
        yield from _special(part)


def _special(part: Part) -> Iterator[Picture]:
    stages = [m for m in part.result.measurements if "share_of" in m.extra]
    if stages:
        title = f"{part.title}: time by stage"
        yield f"{part.question}-stages", title, _stages(title, stages)
    for key, x, y in (("recall", "recall@30", "milliseconds"), ("clients", "clients", "calls per second")):
        if key in part.result.curves:
            title = f"{part.title}: {'recall against time' if key == 'recall' else 'throughput by clients'}"
            yield f"{part.question}-{key}", title, _curve(title, part.result.curves[key], x, y)


def _comparable(rows: list[Measurement]) -> Iterator[tuple[str, int, list[Measurement]]]:
    """(stage, size, rows) of the largest size at which several variants were measured."""
    groups: dict[tuple[str, int], list[Measurement]] = defaultdict(list)
    for m in rows:
        groups[m.stage, m.size].append(m)
    for stage in dict.fromkeys(m.stage for m in rows):
        sizes = [size for (s, size), group in groups.items() if s == stage and len(group) > 1]
        if sizes:
            yield stage, max(sizes), groups[stage, max(sizes)]


def _by_size(rows: list[Measurement]) -> Iterator[tuple[str, dict[str, list[Measurement]]]]:
    """(stage, rows by variant) of stages that were measured at several sizes."""
    for stage in dict.fromkeys(m.stage for m in rows):
        lines: dict[str, list[Measurement]] = defaultdict(list)
        for m in rows:
            if m.stage == stage and m.size:
                lines[m.variant].append(m)
        if any(len(line) > 1 for line in lines.values()):
            yield stage, lines


def _colours(names: list[str]) -> dict[str, str]:
    """memxd in its own colours; a peer in the same one wherever it is known by name."""
    ours = [name for name in names if name.startswith("memxd")]
    free = iter([c for c in _PEERS if c not in {_KNOWN[n] for n in names if n in _KNOWN}] * 4)
    found = {name: _KNOWN.get(name) or next(free, _INK) for name in names if name not in ours}
    return found | {name: (_OURS, "#6aa84f", "#38a3a5", "#1b4332")[n % 4] for n, name in enumerate(ours)}


def _axes(title: str, x: str, y: str, height: float = 3.4) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.6, height))
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _percentiles(title: str, rows: list[Measurement]) -> Figure:
    """A dot for the median, a line from the least to the 99th percentile, fastest on top, logarithmic."""
    figure, axes = _axes(
        title, "milliseconds (dot: median; line: least to 99th percentile; tick: 95th)", "", 1.3 + 0.42 * len(rows)
    )
    rows = sorted(rows, key=lambda m: -m.p50 * _MS[m.unit])
    colours = _colours([m.variant for m in rows])
    for at, m in enumerate(rows):
        p50, p95, p99 = (v * _MS[m.unit] for v in (m.p50, m.p95, m.p99))
        axes.plot([m.min * _MS[m.unit], p99], [at, at], color=colours[m.variant], linewidth=2.2, alpha=0.45)
        axes.plot(p50, at, marker="o", markersize=9, color=colours[m.variant])
        axes.plot(p95, at, marker="|", markersize=10, markeredgewidth=1.6, color=colours[m.variant])
        _label(axes, f"{_short(p50)} ms", (p99, at))
    axes.set_yticks(range(len(rows)), [m.variant for m in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.18)
    return figure


def _sizes(title: str, lines: dict[str, list[Measurement]]) -> Figure:
    """A line for each variant: median against records, both logarithmic; the 95th percentile as a pale band."""
    figure, axes = _axes(title, "records in the store", "milliseconds, median", 3.8)
    colours = _colours(list(lines))
    for name, line in lines.items():
        line = sorted(line, key=lambda m: m.size)
        xs = [m.size for m in line]
        middle = [m.p50 * _MS[m.unit] for m in line]
        ours = name.startswith("memxd")
        if ours:
            tops = [m.p95 * _MS[m.unit] for m in line]
            axes.fill_between(xs, middle, tops, color=colours[name], alpha=0.15, linewidth=0)
        width = 2.4 if ours else 1.4
        axes.plot(xs, middle, marker="o", markersize=4, linewidth=width, color=colours[name], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({m.size for line in lines.values() for m in line})
    axes.set_xticks(ticks, [_records(tick) for tick in ticks])
    axes.minorticks_off()
    _plain_ticks(axes.yaxis)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _stages(title: str, rows: list[Measurement]) -> Figure:
    """One stacked bar for each whole: how its time is spent."""
    wholes: dict[str, list[Measurement]] = defaultdict(list)
    for m in rows:
        wholes[f"{m.extra['share_of']}, {_records(m.size)}" if m.size else str(m.extra["share_of"])].append(m)
    figure, axes = _axes(title, "milliseconds (medians)", "", 1.6 + 0.5 * len(wholes))
    names = list(dict.fromkeys(m.stage for m in rows))
    colours = dict(zip(names, (_OURS, *_PEERS) * 3, strict=False))
    told: set[str] = set()
    for at, (_, group) in enumerate(wholes.items()):
        left = 0.0
        for m in group:
            value = m.p50 * _MS.get(m.unit, 1.0)
            label = None if m.stage in told else m.stage
            told.add(m.stage)
            axes.barh(at, value, left=left, height=0.6, color=colours[m.stage], label=label)
            left += value
        _label(axes, f"{_short(left)} ms", (left, at))
    axes.set_yticks(range(len(wholes)), list(wholes))
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.15)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _curve(title: str, lines: dict[str, list[list[Any]]], x: str, y: str) -> Figure:
    """Points joined in order for each variant; a third value labels its point."""
    figure, axes = _axes(title, x, y, 3.8)
    colours = _colours(list(lines))
    for name, points in lines.items():
        width = 2.2 if name.startswith("memxd") else 1.3
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        axes.plot(xs, ys, marker="o", markersize=4, linewidth=width, color=colours[name], label=name)
        for point in points:
            if len(point) > 2:
                axes.annotate(str(point[2]), point[:2], xytext=(4, 5), textcoords="offset points", fontsize=8)
    if y == "milliseconds":
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
        axes.set_xscale("log", base=2)
        ticks = sorted({p[0] for points in lines.values() for p in points})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _label(axes: Any, text: str, place: tuple[float, float]) -> None:
    """Right of a bar's end."""
    axes.annotate(text, place, xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)


def _plain_ticks(axis: Any) -> None:
    """0.1, 1, 10 instead of powers."""
    formatter: Callable[[float, int], str] = lambda value, _: f"{value:g}"  # noqa: E731
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _records(n: int) -> str:
    if n >= 1_000_000:
        return f"{n / 1e6:g}M"
    return f"{n / 1e3:.0f}k" if n >= 1_000 else str(n)

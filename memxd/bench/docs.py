"""Puts the newest report into docs/PERFORMANCE.md, between markers, with the plots beside it.

Owns the markers and which pictures go along; the wording of the tables is ``tables``'. The rest is written by
hand and stays. Called by ``main`` for ``--write-docs``.
"""

from __future__ import annotations

from pathlib import Path

from memxd.bench import tables
from memxd.bench.report import Report, write
from memxd.errors import InvalidArgumentError

PAGE = "PERFORMANCE.md"
BEGIN, END = "<!-- figures: begin (written by memx bench speed --write-docs) -->", "<!-- figures: end -->"
#: Where pictures lie, below the page's folder.
PICTURES = "performance"


def write_docs(report: Report, folder: Path) -> Path:
    """The page, rewritten. Raises InvalidArgumentError when the page or its markers are not there."""
    page = folder / PAGE
    if not page.is_file():
        raise InvalidArgumentError(f"--write-docs: there is no {page}")
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise InvalidArgumentError(f"--write-docs: {page} lacks the markers")
    figures = tables.markdown(report)
    pictures = _pictures(report, folder / PICTURES)
    shown = "\n".join(f"![{title}]({PICTURES}/{name})" for name, title in pictures)
    write(page, f"{head}{BEGIN}\n\n{figures}\n{shown}\n{END}{tail}")
    return page


def _pictures(report: Report, folder: Path) -> list[tuple[str, str]]:
    """(file name, title) of the plots, drawn into ``folder``; those that lie there from earlier are removed."""
    from memxd.bench import plots

    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    return [(path.name, title) for path, title in plots.draw(report, folder, "svg", chief=True)]

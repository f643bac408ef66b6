"""The list of questions: their names, modules and the order they are asked in.

Owns the list only. A question is a module of this package with ``run(bench: Bench) -> Result``; it is imported when it
is asked, so that a peer that is missing hurts no other question. ``runner`` and the command line read the list.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memxd.errors import InvalidArgumentError

if TYPE_CHECKING:
    from memxd.bench.context import Bench
    from memxd.bench.measure import Result


@dataclass(frozen=True, slots=True)
class Question:
    """``name`` is the module's and what ``--only`` takes; ``title`` is what the report says."""

    name: str
    title: str

    def load(self) -> Callable[[Bench], Result]:
        """The module's ``run``. Raises ImportError when something it needs is not installed."""
        found: Callable[[Bench], Result] = importlib.import_module(f"memxd.bench.{self.name}").run
        return found


#: In the order they are asked: what needs no store first, what wears a store out last.
QUESTIONS: tuple[Question, ...] = (
    Question("rerank", "Ranking all records at once"),
    Question("embedding", "Embedding"),
    Question("keyword", "Keyword leg"),
    Question("vector", "Vector leg"),
    Question("filters", "Filters"),
    Question("socket", "A search end to end"),
    Question("scopes", "Many small scopes"),
    Question("memory", "Memory"),
    Question("start", "Starting"),
    Question("stall", "Searches beside other work"),
    Question("concurrency", "Many callers at once"),
    Question("writing", "Writing"),
)


def chosen(names: tuple[str, ...], questions: tuple[Question, ...] = QUESTIONS) -> tuple[Question, ...]:
    """Those of these names in their order, all for none. Raises InvalidArgumentError for an unknown name."""
    known = {question.name for question in questions}
    if unknown := sorted(set(names) - known):
        raise InvalidArgumentError(
            f"--only: no such question: {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return tuple(q for q in questions if not names or q.name in names)

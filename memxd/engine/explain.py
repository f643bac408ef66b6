"""Why each hit stands where it stands.

Owns gathering the evidence of a ranked hit into an Explanation; computes nothing that the ranking did not use, except
the words that matched. Called by search.py when a caller asks.
"""

from __future__ import annotations

import math
from collections import defaultdict

from memxd.engine.candidates import Candidates
from memxd.engine.indexes import Indexes
from memxd.engine.profiles import Plan
from memxd.engine.ranking import Ranked
from memxd.engine.vectors import Vectors
from memxd.index.selection import Selection
from memxd.model import Explanation, Factor, TermMatch
from memxd.store import Row

#: Ids of folded repetitions that an explanation names.
FOLDED_IDS = 20


class Explainer:
    """Explains. One per engine; holds no state of a search."""

    def __init__(self, indexes: Indexes, vectors: Vectors) -> None:
        self._indexes = indexes
        self._vectors = vectors

    def explain(
        self,
        plan: Plan,
        found: Candidates | None,
        ranked: Ranked,
        selection: Selection,
        rows: list[tuple[int, Row]],
        folded_ids: dict[int, str],
    ) -> list[Explanation]:
        """One explanation for each (candidate position, row), in order."""
        terms: list[tuple[TermMatch, ...]] = [()] * len(rows)
        if found is not None and found.keyword_asked and len(found.question.terms):
            terms = self._indexes.lexical.explain(found.question.terms, [row.rid for _, row in rows], selection)
        folded = folded_positions(ranked)
        return [
            self._one(plan, found, ranked, position, row, terms[n], folded[position], folded_ids)
            for n, (position, row) in enumerate(rows)
        ]

    def _one(
        self,
        plan: Plan,
        found: Candidates | None,
        ranked: Ranked,
        at: int,
        row: Row,
        terms: tuple[TermMatch, ...],
        folded: list[int],
        folded_ids: dict[int, str],
    ) -> Explanation:
        weights = plan.weights
        cosine, keyword = float(ranked.cosine[at]), float(ranked.keyword[at])
        return Explanation(
            semantic=Factor(float(ranked.semantic[at]), weights[0]),
            recency=Factor(float(ranked.recency[at]), weights[1]),
            frequency=Factor(float(ranked.frequency[at]), weights[2]),
            importance=Factor(float(ranked.importance[at]), weights[3]),
            raw_score=float(ranked.raw[at]),
            z_score=float(ranked.z[at]),
            rrf=float(ranked.rrf[at]),
            cosine=None if math.isnan(cosine) else cosine,
            vector_rank=int(ranked.vector_rank[at]) or None,
            keyword_score=keyword if keyword > 0.0 else None,
            keyword_rank=int(ranked.keyword_rank[at]) or None,
            terms=terms,
            chunk=None if found is None else _chunk(found, ranked, at),
            notes=_notes(row, found, self._vectors.embedder.info.remote),
            folded=len(folded),
            folded_ids=tuple(folded_ids[int(ranked.rids[p])] for p in folded if int(ranked.rids[p]) in folded_ids)[
                :FOLDED_IDS
            ],
        )


def folded_positions(ranked: Ranked) -> dict[int, list[int]]:
    """Candidate positions folded into each kept one, best first."""
    groups: dict[int, list[int]] = defaultdict(list)
    for position in ranked.order.tolist():
        into = int(ranked.folded_into[position])
        if into >= 0:
            groups[into].append(position)
    return groups


def _chunk(found: Candidates, ranked: Ranked, at: int) -> int | None:
    """Number of the chunk that the candidate's cosine is of."""
    by_vector, by_keyword = int(ranked.vector_rank[at]), int(ranked.keyword_rank[at])
    if by_vector:
        return int(found.vector_chunks[by_vector - 1])
    chunk = int(found.keyword_chunks[by_keyword - 1]) if len(found.keyword_chunks) else -1
    return None if chunk < 0 else chunk


def _notes(row: Row, found: Candidates | None, remote: bool) -> tuple[str, ...]:
    notes = []
    if found is None:
        notes.append("ranked without relevance: the semantic weight is 0")
    elif row.memory.vector_pending and row.memory.private and remote:
        notes.append("private: not shown to the remote embedder, so found by its words alone")
    elif row.memory.vector_pending:
        notes.append("its vector is still to be made: found by its words alone")
    return tuple(notes)

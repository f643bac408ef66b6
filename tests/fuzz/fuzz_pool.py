"""What a run has learnt from the daemon's answers, for requests that reach further than random ones.

Owns the places under attack, the ids found in each, page tokens, and the model whose vectors are accepted. Bounded:
old ids make room, most of them are erased by then anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from memxd.v1 import memory_service_pb2 as pb

#: Whose memories are attacked, as (agent_id, user_id); the last one is what an absent scope means.
Place = tuple[str, str]
PLACES: tuple[Place, ...] = (("fuzz", "fuzz"), ("fuzz", "fuzz-b"), ("default", "default"))


@dataclass
class Pool:
    """What the run has learnt so far: ids, tokens, and the model whose vectors are accepted."""

    ids: dict[Place, list[str]] = field(default_factory=dict)
    link_ids: dict[Place, list[str]] = field(default_factory=dict)
    foreign_ids: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    model_id: str = ""
    dimension: int = 0
    folder: str = ""  # where backups may be written

    def learn(self, answer: Message) -> None:
        """Remember ids and page tokens of an answer, a bounded number of them."""
        for name, ids in (("memory", self.ids), ("link", self.link_ids)):
            if name in answer.DESCRIPTOR.fields_by_name and answer.HasField(name):
                self._keep_id(ids, getattr(answer, name))
        if isinstance(answer, pb.StoreManyResponse) and answer.HasField("stored"):
            self.learn(answer.stored)
        for name in ("memories", "links"):
            each_field = answer.DESCRIPTOR.fields_by_name.get(name)
            if each_field is not None and each_field.is_repeated:
                for each in list(getattr(answer, name))[:3]:
                    ids = self.link_ids if name == "links" else self.ids
                    self._keep_id(ids, each.memory if isinstance(each, pb.TraversedMemory) else each)
        self._keep(self.tokens, getattr(answer, "next_page_token", ""))

    def _keep_id(self, ids: dict[Place, list[str]], resource: Any) -> None:
        place = (resource.scope.agent_id, resource.scope.user_id)
        if place in PLACES:
            self._keep(ids.setdefault(place, []), resource.id)

    @staticmethod
    def _keep(kept: list[str], value: str) -> None:
        if value:
            kept.append(value)
            del kept[:-200]

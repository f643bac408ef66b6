"""Memories that nobody under fire may touch, and the proof that nobody did.

Owns three scopes next to the fuzzed ones, with memories in every state and links between them, and compares every
byte of them afterwards, through Get, List, Count, ListLinks and both legs of Search. The fuzzed requests know their
ids.
"""

from __future__ import annotations

import grpc
from google.protobuf import field_mask_pb2, struct_pb2, timestamp_pb2

from memxd.v1 import memory_pb2, memory_service_pb2_grpc, search_pb2
from memxd.v1 import memory_service_pb2 as pb

SECONDS = 30.0
SCOPES = (("fuzz", "guarded-person"), ("guarded-agent", "fuzz"), ("guarded-agent", "guarded-person"))
EVERY_STATE = memory_pb2.Filter(states=[1, 2, 3])


class Guard:
    """Stores on ``store``; ``problems`` tells what is not as it was."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._rpc = memory_service_pb2_grpc.MemoryServiceStub(channel)
        self._before: list[bytes] = []
        self.ids: list[str] = []
        self._active: list[tuple[memory_pb2.Scope, str, str]] = []

    def on(self, channel: grpc.Channel) -> Guard:
        """The same memories, looked at over another connection."""
        other = Guard(channel)
        other._before, other.ids, other._active = self._before, self.ids, self._active
        return other

    def store(self) -> None:
        """Fill the scopes."""
        for agent, user in SCOPES:
            self._fill(memory_pb2.Scope(agent_id=agent, user_id=user))
        self._before = self._state()

    def _fill(self, scope: memory_pb2.Scope) -> None:
        ids = []
        for n in range(8):
            metadata = struct_pb2.Struct()
            metadata.update({"n": n, "list": [1, "two", None], "text": "ключ"})
            text = f"guarded{scope.agent_id[:4]}{scope.user_id[:4]}{n} keeps the {n}th jewel of 東京 👑"
            new = pb.NewMemory(
                content=text, type=n % 5 + 1, tags=["kept", f"n{n}"], metadata=metadata, importance=n / 10,
                event_at=timestamp_pb2.Timestamp(seconds=1_600_000_000 + n), source="guard", private=n == 3,
                supersedes=ids[:1] if n == 7 else [],
            )  # fmt: skip
            stored = self._rpc.Store(pb.StoreRequest(scope=scope, memory=new), timeout=SECONDS)
            ids.append(stored.memory.id)
            if 0 < n < 7:
                self._active.append((scope, stored.memory.id, text))
        archive = pb.MemoryPatch(state=memory_pb2.MEMORY_STATE_ARCHIVED)
        mask = field_mask_pb2.FieldMask(paths=["state"])
        self._rpc.Update(pb.UpdateRequest(scope=scope, id=ids[7], update_mask=mask, memory=archive), timeout=SECONDS)
        for a, b in ((1, 2), (2, 3), (3, 1)):
            link = pb.CreateLinkRequest(scope=scope, source_id=ids[a], target_id=ids[b], type=2, strength=0.5)
            self._rpc.CreateLink(link, timeout=SECONDS)
        self.ids.extend(ids)

    def _state(self) -> list[bytes]:
        state = []
        for agent, user in SCOPES:
            scope = memory_pb2.Scope(agent_id=agent, user_id=user)
            listed = self._rpc.List(pb.ListRequest(scope=scope, filter=EVERY_STATE, page_size=500), timeout=SECONDS)
            state.extend(m.SerializeToString(deterministic=True) for m in listed.memories)
            state.append(b"%d memories" % len(listed.memories))
            counted = self._rpc.Count(pb.CountRequest(scope=scope), timeout=SECONDS)
            state.append(b"%d active" % counted.count)
            for each in listed.memories:
                got = self._rpc.Get(pb.GetRequest(scope=scope, id=each.id, record_access=False), timeout=SECONDS)
                state.append(got.memory.SerializeToString(deterministic=True))
                links = self._rpc.ListLinks(pb.ListLinksRequest(scope=scope, memory_id=each.id), timeout=SECONDS)
                state.extend(link.SerializeToString(deterministic=True) for link in links.links)
        return state

    def problems(self) -> list[str]:
        """What has changed, or cannot be found any more."""
        after = self._state()
        changed = [
            f"guarded state changed: {b!r} -> {a!r}" for b, a in zip(self._before, after, strict=False) if a != b
        ]
        if len(after) != len(self._before):
            changed.append(f"{len(self._before)} guarded facts became {len(after)}")
        for scope, id, text in self._active:
            for mode in (search_pb2.SEARCH_MODE_KEYWORD, search_pb2.SEARCH_MODE_VECTOR):
                question = pb.SearchRequest(
                    scope=scope, query=text, mode=mode, exact=True, record_retrieval=False, k=8,
                    ranking=search_pb2.Ranking(dedup=search_pb2.DEDUP_MODE_OFF, reject=False),
                )  # fmt: skip
                answer = self._rpc.Search(question, timeout=SECONDS)
                if id not in [hit.memory.id for hit in answer.hits]:
                    changed.append(f"guarded memory {id} is not found by mode {mode}")
        return changed

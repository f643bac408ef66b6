"""One agent of the concurrency test: random calls in its own scope, each checked against its model.

Owns the choice and the sending of calls and what their outcome means for the model: done, refused (nothing happened),
or never answered (open until ``Model.settle``). Also takes part in what all agents share: one counter changed under
``expected_revision``, and equal texts that must stay one memory. Many run at once, each on a thread of its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
from google.protobuf import field_mask_pb2, struct_pb2

from fuzz_model import ACTIVE, ARCHIVED, SECONDS, Model, Record
from fuzz_outcomes import SHARED_SCOPE, Patient, Shared, StoppingError, UnansweredError, meaning_of, reason_of, spelt
from memxd.v1 import memory_pb2, memory_service_pb2_grpc
from memxd.v1 import memory_service_pb2 as pb

COMMON = (
    "the", "agent", "noted", "that", "somebody", "likes", "green", "tea", "in", "the", "morning", "near",
    "an", "old", "harbour",
)  # fmt: skip


class Actor:
    """One agent. ``run`` until told to stop, until the daemon goes away, or until something is wrong."""

    def __init__(self, number: int, seed: int, shared: Shared) -> None:
        self.name = f"t{number}"
        self.model = Model(memory_pb2.Scope(agent_id="model", user_id=self.name))
        self._rng = random.Random(f"{seed}/{number}")
        self._shared = shared
        self._made = 0
        self._revision = 0
        self._rpc: Any = None

    def run(self, channel: grpc.Channel, stop: threading.Event) -> None:
        """Act. Problems go to the shared list."""
        self._rpc = memory_service_pb2_grpc.MemoryServiceStub(channel)
        acts: list[tuple[int, Callable[[], None]]] = [
            (12, self._store), (2, self._store_again), (3, self._store_many), (3, self._supersede), (6, self._rewrite),
            (3, self._attributes), (2, self._archive), (4, self._delete), (1, self._delete_by_tag), (4, self._link),
            (1, self._unlink), (4, self._get), (10, self._look), (3, self._look_for_gone), (2, self._lists),
            (3, self._count_up), (2, self._shared_fact),
        ]  # fmt: skip
        weights = [weight for weight, _ in acts]
        while not stop.is_set():
            act = self._rng.choices([a for _, a in acts], weights)[0]
            try:
                act()
            except UnansweredError:
                return
            except Exception as error:  # whatever it is: it is told with the name of what was done
                with self._shared.lock:
                    self._shared.problems.append(f"{self.name} {act.__name__}: {type(error).__name__}: {error}")
                return
            with self._shared.lock:
                self._shared.calls += 1

    # -- outcomes ------------------------------------------------------------------------------------------------

    def _call(self, method: str, request: Any, refusals: tuple[str, ...] = ()) -> Any:
        """The answer, or None when the daemon was too busy or refused for one of these reasons.

        UnansweredError when it went away meanwhile; AssertionError for every other refusal.
        """
        try:
            answer = getattr(self._rpc, method)(request, timeout=SECONDS)
        except grpc.RpcError as error:
            if reason_of(error) in ("OVERLOADED", *refusals):
                return None
            raise meaning_of(error) from error
        revision = getattr(answer, "revision", None)
        if revision is not None:
            assert revision >= self._revision, f"{method}: revision {revision} after {self._revision}"
            self._revision = revision
        return answer

    def _new(self) -> tuple[str, str]:
        """A word nobody has used, and a text with it."""
        self._made += 1
        word = f"zq{spelt(int(self.name[1:]))}w{spelt(self._made)}q"
        return word, " ".join([*self._rng.choices(COMMON, k=self._rng.randint(3, 9)), word])

    def _memory(self, content: str, **more: Any) -> pb.NewMemory:
        importance, tag = self._rng.randrange(11) / 10, f"tag{self._rng.randrange(12)}"
        return pb.NewMemory(content=content, importance=importance, tags=[tag], **more)

    def _keep(self, word: str, stored: memory_pb2.Memory) -> Record:
        record = Record(stored.id, word, stored.content, stored.importance, stored.tags[0])
        assert stored.id not in self.model.records, "an id was given twice"
        self.model.records[stored.id] = record
        return record

    def _any(self) -> Record | None:
        active = self.model.active()
        return self._rng.choice(active) if active else None

    # -- storing ------------------------------------------------------------------------------------------------

    def _store(self, supersedes: Record | None = None) -> None:
        word, content = self._new()
        new = self._memory(content, supersedes=[supersedes.id] if supersedes else [])
        request = pb.StoreRequest(scope=self.model.scope, memory=new)
        try:
            answer = self._call("Store", request)
        except UnansweredError as error:
            if not isinstance(error, StoppingError):
                self.model.maybe_stored[content] = word
                if supersedes:
                    self.model.maybe_superseded[content] = supersedes.id
            raise
        if answer is None:
            return
        assert not answer.deduplicated
        record = self._keep(word, answer.memory)
        if supersedes:
            self.model.supersede(supersedes.id, record.id)
        self.model.check_visible(self._reading(), record)

    def _supersede(self) -> None:
        self._store(supersedes=self._any())

    def _store_again(self) -> None:
        record = self._any()
        if record is None:
            return
        new = pb.NewMemory(content=f"  {record.content} ", tags=[record.tag])
        answer = self._call("Store", pb.StoreRequest(scope=self.model.scope, memory=new))
        assert answer is None or (answer.deduplicated and answer.memory.id == record.id), answer

    def _store_many(self) -> None:
        texts = [self._new() for _ in range(self._rng.randint(1, 12))]
        items = [pb.StoreManyRequest(scope=self.model.scope, memory=self._memory(content)) for _, content in texts]
        answered = 0
        try:
            for answer in self._rpc.StoreMany(iter(items), timeout=SECONDS):
                self._keep(texts[answer.index][0], answer.stored.memory)
                answered += 1
        except grpc.RpcError as error:
            if reason_of(error) == "OVERLOADED":
                return
            meaning = meaning_of(error)
            if not isinstance(meaning, StoppingError):  # that one says: what was not answered was not stored
                self.model.maybe_stored |= {content: word for word, content in texts[answered:]}
            raise meaning from error
        assert answered == len(items)

    # -- changing ------------------------------------------------------------------------------------------------

    def _change(self, record: Record, after: Record, patch: pb.MemoryPatch, *paths: str) -> None:
        mask = field_mask_pb2.FieldMask(paths=paths)
        request = pb.UpdateRequest(scope=self.model.scope, id=record.id, update_mask=mask, memory=patch)
        try:
            answer = self._call("Update", request)
        except UnansweredError as error:
            if not isinstance(error, StoppingError):
                self.model.maybe_changed[record.id] = after
            raise
        if answer is not None:
            if after.word != record.word:
                self.model.gone_words.append(record.word)
            self.model.records[record.id] = after

    def _rewrite(self) -> None:
        record = self._any()
        if record is None:
            return
        word, content = self._new()
        after = replace(record, word=word, content=content)
        self._change(record, after, pb.MemoryPatch(content=content), "content")
        if self.model.records[record.id] is after:
            self.model.check_visible(self._reading(), after)
            self.model.check_hidden(self._reading(), record.word)

    def _attributes(self) -> None:
        record = self._any()
        if record is not None:
            after = replace(record, importance=self._rng.randrange(11) / 10, tag=f"tag{self._rng.randrange(12)}")
            patch = pb.MemoryPatch(importance=after.importance, tags=[after.tag])
            self._change(record, after, patch, "importance", "tags")

    def _archive(self) -> None:
        archived = [r for r in self.model.records.values() if r.state == ARCHIVED]
        record = self._rng.choice(archived) if archived and self._rng.random() < 0.5 else self._any()
        if record is not None:
            after = replace(record, state=ACTIVE if record.state == ARCHIVED else ARCHIVED)
            self._change(record, after, pb.MemoryPatch(state=after.state), "state")

    # -- erasing and linking ---------------------------------------------------------------------------------------

    def _delete(self) -> None:
        if not self.model.records:
            return
        record = self._rng.choice(list(self.model.records.values()))
        self._erase("Delete", pb.DeleteRequest(scope=self.model.scope, id=record.id), {record.id})
        if record.id not in self.model.records:
            self.model.check_hidden(self._reading(), record.word)

    def _delete_by_tag(self) -> None:
        tag = f"tag{self._rng.randrange(12)}"
        doomed = {r.id for r in self.model.records.values() if r.tag == tag}
        request = pb.DeleteManyRequest(scope=self.model.scope, filter=memory_pb2.Filter(tags_any=[tag]))
        answer = self._erase("DeleteMany", request, doomed)
        assert answer is None or answer.deleted_count == len(doomed), (answer, doomed)

    def _erase(self, method: str, request: Any, doomed: set[str]) -> Any:
        try:
            answer = self._call(method, request)
        except UnansweredError as error:
            if not isinstance(error, StoppingError):
                self.model.maybe_erased = doomed
            raise
        if answer is not None:
            for id in doomed:
                self.model.erase(id)
        return answer

    def _link(self) -> None:
        one, two = self._any(), self._any()
        if one is None or two is None or one is two or (one.id, two.id) in self.model.links.values():
            return
        request = pb.CreateLinkRequest(scope=self.model.scope, source_id=one.id, target_id=two.id, type=2)
        try:
            answer = self._call("CreateLink", request)
        except UnansweredError as error:
            self.model.maybe_linked = not isinstance(error, StoppingError)
            raise
        if answer is not None:
            self.model.links[answer.link.id] = (one.id, two.id)
            self.model.check_links(self._reading(), one.id)

    def _unlink(self) -> None:
        if not self.model.links:
            return
        id = self._rng.choice(list(self.model.links))
        try:
            answer = self._call("DeleteLink", pb.DeleteLinkRequest(scope=self.model.scope, id=id))
        except UnansweredError as error:
            if not isinstance(error, StoppingError):
                del self.model.links[id]
                self.model.maybe_linked = True
            raise
        if answer is not None:
            del self.model.links[id]

    # -- looking ------------------------------------------------------------------------------------------------

    def _get(self) -> None:
        record = self._any()
        if record is None:
            return
        try:
            answer = self._call("Get", pb.GetRequest(scope=self.model.scope, id=record.id))
        except UnansweredError:
            self.model.maybe_got = record.id
            raise
        if answer is not None:
            assert answer.memory.content == record.content
            assert answer.memory.access_count == record.gets, (answer.memory.access_count, record)
            record.gets += 1

    def _look(self) -> None:
        record = self._any()
        if record is not None:
            self.model.check_visible(self._reading(), record)

    def _look_for_gone(self) -> None:
        hidden = [r.word for r in self.model.records.values() if r.state != ACTIVE]
        words = self.model.gone_words[-20:] + hidden
        if words:
            self.model.check_hidden(self._reading(), self._rng.choice(words))

    def _lists(self) -> None:
        self.model.check_lists(self._reading())

    def _reading(self) -> Any:
        return Patient(self._call)

    # -- what all share --------------------------------------------------------------------------------------------

    def _count_up(self) -> None:
        """Read, add one, write back unless somebody else was faster."""
        shared = self._shared
        seen = self._call("Get", pb.GetRequest(scope=SHARED_SCOPE, id=shared.counter_id, record_access=False))
        if seen is None:
            return
        metadata = struct_pb2.Struct()
        metadata.update({"n": seen.memory.metadata["n"] + 1})
        request = pb.UpdateRequest(
            scope=SHARED_SCOPE, id=shared.counter_id, memory=pb.MemoryPatch(metadata=metadata),
            update_mask=field_mask_pb2.FieldMask(paths=["metadata"]), expected_revision=seen.memory.revision,
        )  # fmt: skip
        try:
            answer = self._call("Update", request, ("REVISION_MISMATCH",))
        except UnansweredError as error:
            with shared.lock:
                shared.open_increments += not isinstance(error, StoppingError)
            raise
        with shared.lock:
            shared.increments += answer is not None

    def _shared_fact(self) -> None:
        """Everybody stores the same few texts: each must remain one memory, with everybody's tag."""
        content = f"shared fact number {self._rng.randrange(6)}"
        new = pb.NewMemory(content=content, tags=[self.name])
        answer = self._call("Store", pb.StoreRequest(scope=SHARED_SCOPE, memory=new))
        if answer is None:
            return
        with self._shared.lock:
            id = self._shared.fact_ids.setdefault(content, answer.memory.id)
            self._shared.fact_tags.setdefault(content, set()).add(self.name)
        assert id == answer.memory.id, f"{content!r} became two memories"

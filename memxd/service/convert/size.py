"""Keeps an answer below 3.5 MiB, so that every client can receive it.

Owns the order in which an answer is cut: the longest contents first (every hit keeps the same share), then metadata,
then the terms of explanations, the explanations, and at last all but ids and scores. A memory that lost anything says
``content_truncated``; ``Get`` returns it whole. Called by the servicers on messages they are about to return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from google.protobuf.message import Message

from memxd.model import Limits
from memxd.v1 import memory_pb2, memory_service_pb2, search_pb2

#: Room for lengths and tags that change when texts get shorter.
SLACK = 4_096


def fits(message: Message, limit: int = Limits.ANSWER_BYTES) -> bool:
    """Whether the message may be sent as it is."""
    return message.ByteSize() <= limit


def shrink_search(
    message: Message, answers: Iterable[memory_service_pb2.SearchResponse], limit: int = Limits.ANSWER_BYTES
) -> None:
    """Cut ``answers``, which lie within ``message``, until it fits. Ids, ranks and scores always stay."""
    if fits(message, limit):
        return
    hits = [hit for answer in answers for hit in answer.hits]
    memories = [hit.memory for hit in hits]
    steps: list[Callable[[], None]] = [
        lambda: _cut_contents(message, memories, limit),
        lambda: _drop_metadata(memories),
        lambda: _drop_terms(hits),
        lambda: _drop_explanations(hits),
        lambda: _keep_ids(memories),
    ]
    _apply(message, steps, limit)


def shrink_traversal(message: memory_service_pb2.TraverseResponse, limit: int = Limits.ANSWER_BYTES) -> None:
    """Cut contents, then metadata, then leave out the last links (``truncated`` says so) until the answer fits."""
    if fits(message, limit):
        return
    memories = [reached.memory for reached in message.memories]
    steps: list[Callable[[], None]] = [
        lambda: _cut_contents(message, memories, limit),
        lambda: _drop_metadata(memories),
        lambda: _drop_link_metadata(message.links),
        lambda: _drop_links(message, limit),
        lambda: _keep_ids(memories),
    ]
    _apply(message, steps, limit)


def longest_prefix(messages: Sequence[Message], limit: int) -> int:
    """How many of the first messages fit into ``limit`` bytes together; at least 1."""
    total = 0
    for count, message in enumerate(messages):
        total += message.ByteSize() + 8  # tag and length
        if total > limit:
            return max(1, count)
    return len(messages)


def _apply(message: Message, steps: Iterable[Callable[[], None]], limit: int) -> None:
    for step in steps:
        step()
        if fits(message, limit):
            return
    raise AssertionError("an answer of ids and scores is over the limit")


def _cut_contents(message: Message, memories: list[memory_pb2.Memory], limit: int) -> None:
    """Give every content the same greatest length, in bytes, so that all together fit ("water filling")."""
    sizes = [len(memory.content.encode()) for memory in memories]
    room = max(0, limit - SLACK - (message.ByteSize() - sum(sizes)))
    share = _level(sizes, room)
    for memory, size in zip(memories, sizes, strict=True):
        if size > share:
            memory.content = memory.content.encode()[:share].decode("utf-8", "ignore")
            memory.content_truncated = True


def _level(sizes: list[int], room: int) -> int:
    """The greatest level with ``sum(min(size, level)) <= room``."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return room // left
        room -= size
        left -= 1
    return max(sizes, default=0)


def _drop_metadata(memories: Iterable[memory_pb2.Memory]) -> None:
    for memory in memories:
        if memory.HasField("metadata"):
            memory.ClearField("metadata")
            memory.content_truncated = True


def _drop_link_metadata(links: Iterable[memory_pb2.Link]) -> None:
    for link in links:
        link.ClearField("metadata")


def _drop_links(message: memory_service_pb2.TraverseResponse, limit: int) -> None:
    links = list(message.links)
    rest = message.ByteSize() - sum(link.ByteSize() + 8 for link in links)
    kept = longest_prefix(links, max(0, limit - SLACK - rest))
    del message.links[kept:]
    message.truncated = True


def _drop_terms(hits: Iterable[search_pb2.Hit]) -> None:
    for hit in hits:
        if hit.explanation.terms:
            del hit.explanation.terms[:]
            hit.explanation.notes.append("terms left out: the answer would be too large")


def _drop_explanations(hits: Iterable[search_pb2.Hit]) -> None:
    for hit in hits:
        hit.ClearField("explanation")


def _keep_ids(memories: Iterable[memory_pb2.Memory]) -> None:
    for memory in memories:
        id_, kind = memory.id, memory.type
        memory.Clear()
        memory.id, memory.type, memory.content_truncated = id_, kind, True

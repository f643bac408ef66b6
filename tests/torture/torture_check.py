"""Comparing a daemon that was started again with what its clients were told, through the public API alone.

Owns the reads (List, Count, ListLinks, SearchMany by each leg, Status, Verify) and the order: what was found, open
calls sent again, the whole compared. Used after every kill.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb
from torture_client import SECONDS, Client
from torture_model import ACTIVE, SUPERSEDES, Facts, Verdict, between, compare
from torture_process import Process

EVERY_STATE = memory_pb2.Filter(states=[1, 2, 3])
LEGS = {"vector": 2, "keyword": 3}
#: How long an index may take until it answers again.
WHOLE_SECONDS = 30.0


def check(process: Process, clients: Sequence[Client]) -> Verdict:
    """Everything; the models know afterwards how open calls ended."""
    verdict = Verdict()
    rpc = process.memory
    await_whole(process, verdict)
    for client in clients:
        before, found = client.model.copy(), listed(rpc, client)
        open = client.model.open
        if open is None:
            compare(before, found, verdict)
        else:
            client.settle(rpc)  # under its request id: one row, whether it had happened or not
            between(before, client.model, found, open.whole, verdict)
            found = listed(rpc, client)
            compare(client.model, found, verdict)
        client.model.learn(found)
        check_counts(rpc, client, verdict)
        check_links(rpc, client, verdict)
        check_legs(rpc, client, verdict)
    check_whole(process, clients, verdict)
    return verdict


def await_whole(process: Process, verdict: Verdict) -> None:
    """Wait until every index serves; a large one may be built behind the daemon's back."""
    end = time.monotonic() + WHOLE_SECONDS
    while True:
        status = process.admin.Status(admin_pb.StatusRequest(), timeout=SECONDS)
        late = [index for index in status.indexes if index.state != admin_pb.INDEX_STATE_READY]
        if not late:
            return
        if time.monotonic() > end:
            verdict.mismatches.append(f"indexes do not come back: {late}")
            return
        time.sleep(0.1)


def listed(rpc: Any, client: Client) -> dict[str, Facts]:
    """Everything in the client's scope."""
    found: dict[str, Facts] = {}
    token = ""
    while True:
        request = pb.ListRequest(scope=client.scope, filter=EVERY_STATE, page_size=500, page_token=token)
        page = rpc.List(request, timeout=SECONDS)
        for memory in page.memories:
            assert not memory.vector_pending, memory
            found[memory.id] = Facts.of(memory)
        token = page.next_page_token
        if not token:
            return found


def check_counts(rpc: Any, client: Client, verdict: Verdict) -> None:
    """Count agrees with the model."""
    active = sum(facts.state == ACTIVE for facts in client.model.records.values())
    for filter, expected in ((None, active), (EVERY_STATE, len(client.model.records))):
        count = rpc.Count(pb.CountRequest(scope=client.scope, filter=filter), timeout=SECONDS).count
        if count != expected:
            verdict.mismatches.append(f"{client.scope.user_id}: Count says {count}, {expected} are there")


def check_links(rpc: Any, client: Client, verdict: Verdict) -> None:
    """Each record's links, where the model knows any."""
    model = client.model
    ends = {id for link in model.links.values() for id in link[:2]} | {id for pair in model.unnamed for id in pair}
    for id in ends:
        request = pb.ListLinksRequest(scope=client.scope, memory_id=id, page_size=500)
        there = rpc.ListLinks(request, timeout=SECONDS).links
        named = {link.id: (link.source_id, link.target_id, link.type) for link in there if link.type != SUPERSEDES}
        wanted = {link: facts for link, facts in model.links.items() if id in facts[:2]}
        newer = {(link.source_id, link.target_id) for link in there if link.type == SUPERSEDES}
        if named != wanted or newer != {pair for pair in model.unnamed if id in pair}:
            verdict.mismatches.append(f"links of {id} are {named} and {newer}, must be {wanted} and {model.unnamed}")


def check_legs(rpc: Any, client: Client, verdict: Verdict) -> None:
    """Each leg alone finds every active record by its own text, and nothing that is gone or hidden."""
    active = {id: facts for id, facts in client.model.records.items() if facts.state == ACTIVE}
    for leg, mode in LEGS.items():
        questions = [(id, facts.word if leg == "keyword" else facts.content) for id, facts in active.items()]
        for (id, _), answer in _answers(rpc, client, questions, mode):
            found = {hit.memory.id: Facts.of(hit.memory) for hit in answer.hits}
            if answer.degraded or id not in found:
                verdict.mismatches.append(f"the {leg} leg does not find {active[id]} ({list(answer.degraded)})")
            elif not active[id].equals(found[id]):
                verdict.mismatches.append(f"the {leg} leg finds {found[id]}, must be {active[id]}")
        hidden = [("", word) for word in client.hidden_words()]
        for (_, word), answer in _answers(rpc, client, hidden, mode):
            if any(word in hit.memory.content for hit in answer.hits):
                verdict.resurrected.append(f"the {leg} leg still finds {word}")


def _answers(rpc: Any, client: Client, questions: list[tuple[str, str]], mode: int) -> Iterator[tuple[Any, Any]]:
    for at in range(0, len(questions), 32):
        part = questions[at : at + 32]
        searches = [client.question(query, mode) for _, query in part]
        results = rpc.SearchMany(pb.SearchManyRequest(searches=searches), timeout=SECONDS).results
        for question, result in zip(part, results, strict=True):
            assert result.WhichOneof("result") == "response", result
            yield question, result.response


def check_whole(process: Process, clients: Sequence[Client], verdict: Verdict) -> None:
    """Totals over all scopes, and the daemon's own look at every record in every index."""
    status = process.admin.Status(admin_pb.StatusRequest(), timeout=SECONDS)
    wanted = sum(len(c.model.records) for c in clients), sum(c.model.link_count for c in clients), 0
    found = status.memories, status.links, status.vectors_pending
    if found != wanted:
        verdict.mismatches.append(f"Status tells {found} memories, links, pending vectors; there must be {wanted}")
    *_, last = process.admin.Verify(admin_pb.VerifyRequest(), timeout=2 * SECONDS)
    verdict.mismatches += [f"Verify: {p.part} {p.id}: {p.message}" for p in last.problems]

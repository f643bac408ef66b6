"""MemoryService: each RPC converts, calls the engine's verb of the same name, converts back.

Holds no rule: the engine validates and decides, the interceptor maps errors, ``convert`` cuts answers to size. The
streams, which have shapes of their own, are in ``store_many.py`` and ``moving.py``. gRPC calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grpc

from memxd.errors import InvalidArgumentError, MemxdError
from memxd.model import Direction, Limits, LinkType, Order, SearchAnswer, SearchQuery
from memxd.service.calls import note
from memxd.service.convert import link, memory, search, size, values
from memxd.service.gate import Gate
from memxd.service.moving import export, import_lines
from memxd.service.running import deadline_of
from memxd.service.store_many import store_many
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import memory_service_pb2_grpc

if TYPE_CHECKING:
    from memxd.engine import Engine

Context = grpc.ServicerContext


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """What agents call."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @property
    def _engine(self) -> Engine:
        return self._gate.engine

    def Store(self, request: pb.StoreRequest, context: Context) -> pb.StoreResponse:
        """One memory in."""
        new = memory.new_memory(request.memory)
        stored = self._engine.store(values.scope(request), new, request.request_id, deadline=deadline_of(context))
        response = pb.StoreResponse(deduplicated=stored.deduplicated, revision=stored.revision)
        memory.fill_memory(response.memory, stored.memory)
        return response

    def StoreMany(self, request: Iterator[pb.StoreManyRequest], context: Context) -> Iterator[pb.StoreManyResponse]:
        """Many in, one answer each."""
        return store_many(request, self._gate, deadline_of(context))

    def Get(self, request: pb.GetRequest, context: Context) -> pb.GetResponse:
        """One memory out."""
        record = request.record_access if request.HasField("record_access") else True
        found, revision = self._engine.get(
            values.scope(request), request.id, record_access=record, deadline=deadline_of(context)
        )
        response = pb.GetResponse(revision=revision)
        memory.fill_memory(response.memory, found)
        return response

    def List(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        """A page, made shorter when its bytes are too many: the token then continues after the last one sent."""
        page_size = values.optional(request, "page_size")
        while True:
            page = self._engine.list(
                values.scope(request),
                memory.filter_(request),
                order=values.enum_or_none(Order, request.order, "order"),
                page_size=page_size,
                page_token=request.page_token,
                as_of=values.optional_instant(request, "as_of", "as_of"),
                include_superseded=request.include_superseded,
                deadline=deadline_of(context),
            )
            response = pb.ListResponse(next_page_token=page.next_page_token, revision=page.revision)
            for each in page.memories:
                memory.fill_memory(response.memories.add(), each)
            if size.fits(response) or len(response.memories) <= 1:
                return response
            page_size = size.longest_prefix(response.memories, Limits.ANSWER_BYTES - size.SLACK)

    def Update(self, request: pb.UpdateRequest, context: Context) -> pb.UpdateResponse:
        """One memory changed."""
        changed = self._engine.update(
            values.scope(request),
            request.id,
            memory.patch(request.memory, request.update_mask),
            expected_revision=values.optional(request, "expected_revision"),
            request_id=request.request_id,
            deadline=deadline_of(context),
        )
        response = pb.UpdateResponse(revision=changed.revision)
        memory.fill_memory(response.memory, changed.memory)
        return response

    def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.DeleteResponse:
        """One memory gone."""
        revision = self._engine.delete(
            values.scope(request), request.id, request.request_id, deadline=deadline_of(context)
        )
        return pb.DeleteResponse(revision=revision)

    def DeleteMany(self, request: pb.DeleteManyRequest, context: Context) -> pb.DeleteManyResponse:
        """Everything gone that the filter selects in a scope that is spelled out."""
        count, revision = self._engine.delete_many(
            values.scope_spelled_out(request),
            memory.filter_(request),
            dry_run=request.dry_run,
            request_id=request.request_id,
            deadline=deadline_of(context),
        )
        return pb.DeleteManyResponse(deleted_count=count, revision=revision)

    def Count(self, request: pb.CountRequest, context: Context) -> pb.CountResponse:
        """How many."""
        count, revision = self._engine.count(
            values.scope(request),
            memory.filter_(request),
            as_of=values.optional_instant(request, "as_of", "as_of"),
            include_superseded=request.include_superseded,
            deadline=deadline_of(context),
        )
        return pb.CountResponse(count=count, revision=revision)

    def Search(self, request: pb.SearchRequest, context: Context) -> pb.SearchResponse:
        """One question."""
        answer = self._engine.search(search.search_query(request), deadline=deadline_of(context))
        note(lambda: _about(answer))
        response = pb.SearchResponse()
        search.fill_answer(response, answer)
        size.shrink_search(response, [response])
        return response

    def SearchMany(self, request: pb.SearchManyRequest, context: Context) -> pb.SearchManyResponse:
        """Up to 32 questions; one that cannot even be read is refused on its own."""
        if not 1 <= len(request.searches) <= Limits.SEARCHES:
            raise InvalidArgumentError.field(
                "searches", f"1..{Limits.SEARCHES} searches, there are {len(request.searches)}"
            )
        queries = [_query_or_error(each) for each in request.searches]
        readable = [query for query in queries if not isinstance(query, MemxdError)]
        answers = iter(self._engine.search_many(readable, deadline=deadline_of(context)) if readable else ())
        results = [query if isinstance(query, MemxdError) else next(answers) for query in queries]
        response = pb.SearchManyResponse(
            revision=max((r.revision for r in results if isinstance(r, SearchAnswer)), default=0)
        )
        for result in results:
            search.fill_result(response.results.add(), result)
        size.shrink_search(response, [result.response for result in response.results if result.HasField("response")])
        return response

    def CreateLink(self, request: pb.CreateLinkRequest, context: Context) -> pb.CreateLinkResponse:
        """Two memories joined."""
        made, revision = self._engine.create_link(
            values.scope(request),
            request.source_id,
            request.target_id,
            values.enum_or_none(LinkType, request.type, "type"),
            strength=values.optional_number(request, "strength", "strength"),
            bidirectional=request.bidirectional,
            metadata=values.json_object(request.metadata, "metadata"),
            request_id=request.request_id,
            deadline=deadline_of(context),
        )
        response = pb.CreateLinkResponse(revision=revision)
        link.fill_link(response.link, made)
        return response

    def DeleteLink(self, request: pb.DeleteLinkRequest, context: Context) -> pb.DeleteLinkResponse:
        """Two memories parted."""
        revision = self._engine.delete_link(
            values.scope(request), request.id, request.request_id, deadline=deadline_of(context)
        )
        return pb.DeleteLinkResponse(revision=revision)

    def ListLinks(self, request: pb.ListLinksRequest, context: Context) -> pb.ListLinksResponse:
        """The links of one memory; the page is made shorter as in List."""
        page_size = values.optional(request, "page_size")
        while True:
            page = self._engine.list_links(
                values.scope(request),
                request.memory_id,
                direction=values.enum_or_none(Direction, request.direction, "direction"),
                types=link.link_types(request.types),
                strength_min=values.optional_number(request, "strength_min", "strength_min"),
                page_size=page_size,
                page_token=request.page_token,
                deadline=deadline_of(context),
            )
            response = pb.ListLinksResponse(
                next_page_token=page.next_page_token, total_count=page.total, revision=page.revision
            )
            for each in page.links:
                link.fill_link(response.links.add(), each)
            if size.fits(response) or len(response.links) <= 1:
                return response
            page_size = size.longest_prefix(response.links, Limits.ANSWER_BYTES - size.SLACK)

    def Traverse(self, request: pb.TraverseRequest, context: Context) -> pb.TraverseResponse:
        """A walk along the links."""
        walk = self._engine.traverse(
            values.scope(request),
            request.start_id,
            max_depth=values.optional(request, "max_depth"),
            max_nodes=values.optional(request, "max_nodes"),
            types=link.link_types(request.types),
            direction=values.enum_or_none(Direction, request.direction, "direction"),
            strength_min=values.optional_number(request, "strength_min", "strength_min"),
            deadline=deadline_of(context),
        )
        response = pb.TraverseResponse(truncated=walk.truncated, revision=walk.revision)
        for reached in walk.memories:
            link.fill_traversed(response.memories.add(), reached)
        for each in walk.links:
            link.fill_link(response.links.add(), each)
        size.shrink_traversal(response)
        return response

    def Export(self, request: pb.ExportRequest, context: Context) -> Iterator[pb.ExportResponse]:
        """A whole scope out, as lines."""
        return export(request, self._gate, deadline_of(context))

    def Import(self, request: Iterator[pb.ImportRequest], context: Context) -> Iterator[pb.ImportResponse]:
        """Lines in, and how far they are."""
        return import_lines(request, self._gate, deadline_of(context))


def _about(answer: SearchAnswer) -> dict[str, Any]:
    """What a slow question's line in the log tells of it: where the time went, and how much there was to do."""
    ms = {stage: round(micros / 1e3, 2) for stage, micros in answer.stages}
    return {
        "stages": ms, "hits": len(answer.hits), "candidates": answer.candidates, "degraded": len(answer.degraded),
    }  # fmt: skip


def _query_or_error(request: pb.SearchRequest) -> SearchQuery | MemxdError:
    try:
        return search.search_query(request)
    except MemxdError as error:
        return error

import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memxd.v1 import memory_pb2 as _memory_pb2
from memxd.v1 import search_pb2 as _search_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIST_ORDER_UNSPECIFIED: _ClassVar[ListOrder]
    LIST_ORDER_CREATED_AT_DESC: _ClassVar[ListOrder]
    LIST_ORDER_CREATED_AT_ASC: _ClassVar[ListOrder]
    LIST_ORDER_EVENT_AT_DESC: _ClassVar[ListOrder]
    LIST_ORDER_EVENT_AT_ASC: _ClassVar[ListOrder]
    LIST_ORDER_IMPORTANCE_DESC: _ClassVar[ListOrder]
    LIST_ORDER_IMPORTANCE_ASC: _ClassVar[ListOrder]

class RejectReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REJECT_REASON_UNSPECIFIED: _ClassVar[RejectReason]
    REJECT_REASON_EMPTY: _ClassVar[RejectReason]
    REJECT_REASON_NO_MATCH: _ClassVar[RejectReason]
    REJECT_REASON_LOW_RELEVANCE: _ClassVar[RejectReason]

class DegradedCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEGRADED_CAUSE_UNSPECIFIED: _ClassVar[DegradedCause]
    DEGRADED_CAUSE_EMBEDDER_UNAVAILABLE: _ClassVar[DegradedCause]
    DEGRADED_CAUSE_VECTOR_INDEX_UNAVAILABLE: _ClassVar[DegradedCause]
    DEGRADED_CAUSE_KEYWORD_INDEX_UNAVAILABLE: _ClassVar[DegradedCause]
    DEGRADED_CAUSE_MODEL_MISMATCH: _ClassVar[DegradedCause]
    DEGRADED_CAUSE_VECTORS_PENDING: _ClassVar[DegradedCause]

class ImportConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMPORT_CONFLICT_UNSPECIFIED: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_REFUSE: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_KEEP: _ClassVar[ImportConflict]
    IMPORT_CONFLICT_REPLACE: _ClassVar[ImportConflict]
LIST_ORDER_UNSPECIFIED: ListOrder
LIST_ORDER_CREATED_AT_DESC: ListOrder
LIST_ORDER_CREATED_AT_ASC: ListOrder
LIST_ORDER_EVENT_AT_DESC: ListOrder
LIST_ORDER_EVENT_AT_ASC: ListOrder
LIST_ORDER_IMPORTANCE_DESC: ListOrder
LIST_ORDER_IMPORTANCE_ASC: ListOrder
REJECT_REASON_UNSPECIFIED: RejectReason
REJECT_REASON_EMPTY: RejectReason
REJECT_REASON_NO_MATCH: RejectReason
REJECT_REASON_LOW_RELEVANCE: RejectReason
DEGRADED_CAUSE_UNSPECIFIED: DegradedCause
DEGRADED_CAUSE_EMBEDDER_UNAVAILABLE: DegradedCause
DEGRADED_CAUSE_VECTOR_INDEX_UNAVAILABLE: DegradedCause
DEGRADED_CAUSE_KEYWORD_INDEX_UNAVAILABLE: DegradedCause
DEGRADED_CAUSE_MODEL_MISMATCH: DegradedCause
DEGRADED_CAUSE_VECTORS_PENDING: DegradedCause
IMPORT_CONFLICT_UNSPECIFIED: ImportConflict
IMPORT_CONFLICT_REFUSE: ImportConflict
IMPORT_CONFLICT_KEEP: ImportConflict
IMPORT_CONFLICT_REPLACE: ImportConflict

class NewMemory(_message.Message):
    __slots__ = ("content", "type", "tags", "metadata", "importance", "event_at", "valid_until", "private", "source", "supersedes", "allow_duplicate", "vector", "model_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_AT_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    ALLOW_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    content: str
    type: _memory_pb2.MemoryType
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: float
    event_at: _timestamp_pb2.Timestamp
    valid_until: _timestamp_pb2.Timestamp
    private: bool
    source: str
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    allow_duplicate: bool
    vector: _containers.RepeatedScalarFieldContainer[float]
    model_id: str
    def __init__(self, content: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.MemoryType, str]] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[float] = ..., event_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., private: _Optional[bool] = ..., source: _Optional[str] = ..., supersedes: _Optional[_Iterable[str]] = ..., allow_duplicate: _Optional[bool] = ..., vector: _Optional[_Iterable[float]] = ..., model_id: _Optional[str] = ...) -> None: ...

class StoreRequest(_message.Message):
    __slots__ = ("scope", "memory", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    memory: NewMemory
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., memory: _Optional[_Union[NewMemory, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class StoreResponse(_message.Message):
    __slots__ = ("memory", "deduplicated", "revision")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    deduplicated: bool
    revision: int
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., deduplicated: _Optional[bool] = ..., revision: _Optional[int] = ...) -> None: ...

class StoreManyRequest(_message.Message):
    __slots__ = ("scope", "memory", "request_id", "more")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    memory: NewMemory
    request_id: str
    more: _containers.RepeatedCompositeFieldContainer[StoreManyRequest]
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., memory: _Optional[_Union[NewMemory, _Mapping]] = ..., request_id: _Optional[str] = ..., more: _Optional[_Iterable[_Union[StoreManyRequest, _Mapping]]] = ...) -> None: ...

class StoreManyResponse(_message.Message):
    __slots__ = ("index", "stored", "error", "more", "takes_more")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    TAKES_MORE_FIELD_NUMBER: _ClassVar[int]
    index: int
    stored: StoreResponse
    error: ItemError
    more: _containers.RepeatedCompositeFieldContainer[StoreManyResponse]
    takes_more: bool
    def __init__(self, index: _Optional[int] = ..., stored: _Optional[_Union[StoreResponse, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ..., more: _Optional[_Iterable[_Union[StoreManyResponse, _Mapping]]] = ..., takes_more: _Optional[bool] = ...) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("code", "reason", "message", "field", "retryable", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    field: str
    retryable: bool
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., retryable: _Optional[bool] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("scope", "id", "record_access")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_ACCESS_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    id: str
    record_access: bool
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., id: _Optional[str] = ..., record_access: _Optional[bool] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("memory", "revision")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    revision: int
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("scope", "filter", "order", "page_size", "page_token", "as_of", "include_superseded")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    filter: _memory_pb2.Filter
    order: ListOrder
    page_size: int
    page_token: str
    as_of: _timestamp_pb2.Timestamp
    include_superseded: bool
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., order: _Optional[_Union[ListOrder, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include_superseded: _Optional[bool] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("memories", "next_page_token", "revision")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    next_page_token: str
    revision: int
    def __init__(self, memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("scope", "id", "update_mask", "memory", "expected_revision", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    id: str
    update_mask: _field_mask_pb2.FieldMask
    memory: MemoryPatch
    expected_revision: int
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., id: _Optional[str] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., memory: _Optional[_Union[MemoryPatch, _Mapping]] = ..., expected_revision: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class MemoryPatch(_message.Message):
    __slots__ = ("content", "type", "tags", "metadata", "importance", "event_at", "valid_until", "private", "source", "state")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_AT_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    content: str
    type: _memory_pb2.MemoryType
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: float
    event_at: _timestamp_pb2.Timestamp
    valid_until: _timestamp_pb2.Timestamp
    private: bool
    source: str
    state: _memory_pb2.MemoryState
    def __init__(self, content: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.MemoryType, str]] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[float] = ..., event_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., private: _Optional[bool] = ..., source: _Optional[str] = ..., state: _Optional[_Union[_memory_pb2.MemoryState, str]] = ...) -> None: ...

class UpdateResponse(_message.Message):
    __slots__ = ("memory", "revision")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    revision: int
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("scope", "id", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    id: str
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class DeleteManyRequest(_message.Message):
    __slots__ = ("scope", "filter", "dry_run", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    filter: _memory_pb2.Filter
    dry_run: bool
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., dry_run: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteManyResponse(_message.Message):
    __slots__ = ("deleted_count", "revision")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    revision: int
    def __init__(self, deleted_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class CountRequest(_message.Message):
    __slots__ = ("scope", "filter", "as_of", "include_superseded")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    filter: _memory_pb2.Filter
    as_of: _timestamp_pb2.Timestamp
    include_superseded: bool
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include_superseded: _Optional[bool] = ...) -> None: ...

class CountResponse(_message.Message):
    __slots__ = ("count", "revision")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    count: int
    revision: int
    def __init__(self, count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("scope", "query", "k", "filter", "mode", "ranking", "min_relevance", "explain", "record_retrieval", "asked_at", "as_of", "time_zone", "include_superseded", "exact", "vector", "model_id", "expand_links", "timings")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RANKING_FIELD_NUMBER: _ClassVar[int]
    MIN_RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    RECORD_RETRIEVAL_FIELD_NUMBER: _ClassVar[int]
    ASKED_AT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    EXPAND_LINKS_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    query: str
    k: int
    filter: _memory_pb2.Filter
    mode: _search_pb2.SearchMode
    ranking: _search_pb2.Ranking
    min_relevance: float
    explain: bool
    record_retrieval: bool
    asked_at: _timestamp_pb2.Timestamp
    as_of: _timestamp_pb2.Timestamp
    time_zone: str
    include_superseded: bool
    exact: bool
    vector: _containers.RepeatedScalarFieldContainer[float]
    model_id: str
    expand_links: int
    timings: bool
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., query: _Optional[str] = ..., k: _Optional[int] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., mode: _Optional[_Union[_search_pb2.SearchMode, str]] = ..., ranking: _Optional[_Union[_search_pb2.Ranking, _Mapping]] = ..., min_relevance: _Optional[float] = ..., explain: _Optional[bool] = ..., record_retrieval: _Optional[bool] = ..., asked_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., include_superseded: _Optional[bool] = ..., exact: _Optional[bool] = ..., vector: _Optional[_Iterable[float]] = ..., model_id: _Optional[str] = ..., expand_links: _Optional[int] = ..., timings: _Optional[bool] = ...) -> None: ...

class Degradation(_message.Message):
    __slots__ = ("cause", "message")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    cause: DegradedCause
    message: str
    def __init__(self, cause: _Optional[_Union[DegradedCause, str]] = ..., message: _Optional[str] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("hits", "rejected", "reject_reason", "best_relevance", "candidates", "folded", "below_min_relevance", "degraded", "revision", "timings", "plan")
    HITS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    REJECT_REASON_FIELD_NUMBER: _ClassVar[int]
    BEST_RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FOLDED_FIELD_NUMBER: _ClassVar[int]
    BELOW_MIN_RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[_search_pb2.Hit]
    rejected: bool
    reject_reason: RejectReason
    best_relevance: float
    candidates: int
    folded: int
    below_min_relevance: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    revision: int
    timings: _containers.RepeatedCompositeFieldContainer[_search_pb2.StageTiming]
    plan: str
    def __init__(self, hits: _Optional[_Iterable[_Union[_search_pb2.Hit, _Mapping]]] = ..., rejected: _Optional[bool] = ..., reject_reason: _Optional[_Union[RejectReason, str]] = ..., best_relevance: _Optional[float] = ..., candidates: _Optional[int] = ..., folded: _Optional[int] = ..., below_min_relevance: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ..., revision: _Optional[int] = ..., timings: _Optional[_Iterable[_Union[_search_pb2.StageTiming, _Mapping]]] = ..., plan: _Optional[str] = ...) -> None: ...

class SearchManyRequest(_message.Message):
    __slots__ = ("searches",)
    SEARCHES_FIELD_NUMBER: _ClassVar[int]
    searches: _containers.RepeatedCompositeFieldContainer[SearchRequest]
    def __init__(self, searches: _Optional[_Iterable[_Union[SearchRequest, _Mapping]]] = ...) -> None: ...

class SearchManyResponse(_message.Message):
    __slots__ = ("results", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SearchManyResult]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[SearchManyResult, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class SearchManyResult(_message.Message):
    __slots__ = ("response", "error")
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    response: SearchResponse
    error: ItemError
    def __init__(self, response: _Optional[_Union[SearchResponse, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class CreateLinkRequest(_message.Message):
    __slots__ = ("scope", "source_id", "target_id", "type", "strength", "bidirectional", "metadata", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    BIDIRECTIONAL_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    source_id: str
    target_id: str
    type: _memory_pb2.LinkType
    strength: float
    bidirectional: bool
    metadata: _struct_pb2.Struct
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., source_id: _Optional[str] = ..., target_id: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.LinkType, str]] = ..., strength: _Optional[float] = ..., bidirectional: _Optional[bool] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateLinkResponse(_message.Message):
    __slots__ = ("link", "revision")
    LINK_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    link: _memory_pb2.Link
    revision: int
    def __init__(self, link: _Optional[_Union[_memory_pb2.Link, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteLinkRequest(_message.Message):
    __slots__ = ("scope", "id", "request_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    id: str
    request_id: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteLinkResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class ListLinksRequest(_message.Message):
    __slots__ = ("scope", "memory_id", "direction", "types", "strength_min", "page_size", "page_token")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_MIN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    memory_id: str
    direction: _memory_pb2.LinkDirection
    types: _containers.RepeatedScalarFieldContainer[_memory_pb2.LinkType]
    strength_min: float
    page_size: int
    page_token: str
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., memory_id: _Optional[str] = ..., direction: _Optional[_Union[_memory_pb2.LinkDirection, str]] = ..., types: _Optional[_Iterable[_Union[_memory_pb2.LinkType, str]]] = ..., strength_min: _Optional[float] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLinksResponse(_message.Message):
    __slots__ = ("links", "next_page_token", "total_count", "revision")
    LINKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Link]
    next_page_token: str
    total_count: int
    revision: int
    def __init__(self, links: _Optional[_Iterable[_Union[_memory_pb2.Link, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class TraverseRequest(_message.Message):
    __slots__ = ("scope", "start_id", "max_depth", "max_nodes", "types", "direction", "strength_min")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    START_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_MIN_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    start_id: str
    max_depth: int
    max_nodes: int
    types: _containers.RepeatedScalarFieldContainer[_memory_pb2.LinkType]
    direction: _memory_pb2.LinkDirection
    strength_min: float
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., start_id: _Optional[str] = ..., max_depth: _Optional[int] = ..., max_nodes: _Optional[int] = ..., types: _Optional[_Iterable[_Union[_memory_pb2.LinkType, str]]] = ..., direction: _Optional[_Union[_memory_pb2.LinkDirection, str]] = ..., strength_min: _Optional[float] = ...) -> None: ...

class TraversedMemory(_message.Message):
    __slots__ = ("memory", "depth", "path_strength", "link_ids")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    PATH_STRENGTH_FIELD_NUMBER: _ClassVar[int]
    LINK_IDS_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    depth: int
    path_strength: float
    link_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., depth: _Optional[int] = ..., path_strength: _Optional[float] = ..., link_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class TraverseResponse(_message.Message):
    __slots__ = ("memories", "links", "truncated", "revision")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[TraversedMemory]
    links: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Link]
    truncated: bool
    revision: int
    def __init__(self, memories: _Optional[_Iterable[_Union[TraversedMemory, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[_memory_pb2.Link, _Mapping]]] = ..., truncated: _Optional[bool] = ..., revision: _Optional[int] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("scope", "include_private", "vectors")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PRIVATE_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    include_private: bool
    vectors: bool
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., include_private: _Optional[bool] = ..., vectors: _Optional[bool] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("lines", "done", "total", "finished", "private_left_out")
    LINES_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    lines: bytes
    done: int
    total: int
    finished: bool
    private_left_out: int
    def __init__(self, lines: _Optional[bytes] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., finished: _Optional[bool] = ..., private_left_out: _Optional[int] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("scope", "on_conflict", "first_line", "lines")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    FIRST_LINE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    scope: _memory_pb2.Scope
    on_conflict: ImportConflict
    first_line: int
    lines: bytes
    def __init__(self, scope: _Optional[_Union[_memory_pb2.Scope, _Mapping]] = ..., on_conflict: _Optional[_Union[ImportConflict, str]] = ..., first_line: _Optional[int] = ..., lines: _Optional[bytes] = ...) -> None: ...

class ImportRefusal(_message.Message):
    __slots__ = ("line", "kind", "id", "reason", "message")
    LINE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    line: int
    kind: str
    id: str
    reason: str
    message: str
    def __init__(self, line: _Optional[int] = ..., kind: _Optional[str] = ..., id: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("lines", "added", "unchanged", "replaced", "kept", "refused", "refusals", "revision")
    LINES_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    lines: int
    added: int
    unchanged: int
    replaced: int
    kept: int
    refused: int
    refusals: _containers.RepeatedCompositeFieldContainer[ImportRefusal]
    revision: int
    def __init__(self, lines: _Optional[int] = ..., added: _Optional[int] = ..., unchanged: _Optional[int] = ..., replaced: _Optional[int] = ..., kept: _Optional[int] = ..., refused: _Optional[int] = ..., refusals: _Optional[_Iterable[_Union[ImportRefusal, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

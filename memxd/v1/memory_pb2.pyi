import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_TYPE_UNSPECIFIED: _ClassVar[MemoryType]
    MEMORY_TYPE_EPISODIC: _ClassVar[MemoryType]
    MEMORY_TYPE_SEMANTIC: _ClassVar[MemoryType]
    MEMORY_TYPE_PROCEDURAL: _ClassVar[MemoryType]
    MEMORY_TYPE_EMOTIONAL: _ClassVar[MemoryType]
    MEMORY_TYPE_REFLECTIVE: _ClassVar[MemoryType]

class MemoryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_STATE_UNSPECIFIED: _ClassVar[MemoryState]
    MEMORY_STATE_ACTIVE: _ClassVar[MemoryState]
    MEMORY_STATE_SUPERSEDED: _ClassVar[MemoryState]
    MEMORY_STATE_ARCHIVED: _ClassVar[MemoryState]

class LinkType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_TYPE_UNSPECIFIED: _ClassVar[LinkType]
    LINK_TYPE_SIMILAR: _ClassVar[LinkType]
    LINK_TYPE_RELATED: _ClassVar[LinkType]
    LINK_TYPE_CONTRADICTS: _ClassVar[LinkType]
    LINK_TYPE_EXTENDS: _ClassVar[LinkType]
    LINK_TYPE_SUPERSEDES: _ClassVar[LinkType]
    LINK_TYPE_CAUSED_BY: _ClassVar[LinkType]
    LINK_TYPE_TEMPORAL: _ClassVar[LinkType]

class LinkDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_DIRECTION_UNSPECIFIED: _ClassVar[LinkDirection]
    LINK_DIRECTION_OUTGOING: _ClassVar[LinkDirection]
    LINK_DIRECTION_INCOMING: _ClassVar[LinkDirection]
    LINK_DIRECTION_BOTH: _ClassVar[LinkDirection]
MEMORY_TYPE_UNSPECIFIED: MemoryType
MEMORY_TYPE_EPISODIC: MemoryType
MEMORY_TYPE_SEMANTIC: MemoryType
MEMORY_TYPE_PROCEDURAL: MemoryType
MEMORY_TYPE_EMOTIONAL: MemoryType
MEMORY_TYPE_REFLECTIVE: MemoryType
MEMORY_STATE_UNSPECIFIED: MemoryState
MEMORY_STATE_ACTIVE: MemoryState
MEMORY_STATE_SUPERSEDED: MemoryState
MEMORY_STATE_ARCHIVED: MemoryState
LINK_TYPE_UNSPECIFIED: LinkType
LINK_TYPE_SIMILAR: LinkType
LINK_TYPE_RELATED: LinkType
LINK_TYPE_CONTRADICTS: LinkType
LINK_TYPE_EXTENDS: LinkType
LINK_TYPE_SUPERSEDES: LinkType
LINK_TYPE_CAUSED_BY: LinkType
LINK_TYPE_TEMPORAL: LinkType
LINK_DIRECTION_UNSPECIFIED: LinkDirection
LINK_DIRECTION_OUTGOING: LinkDirection
LINK_DIRECTION_INCOMING: LinkDirection
LINK_DIRECTION_BOTH: LinkDirection

class Scope(_message.Message):
    __slots__ = ("agent_id", "user_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("id", "scope", "content", "type", "tags", "metadata", "importance", "created_at", "updated_at", "event_at", "valid_until", "state", "private", "source", "revision", "access_count", "last_accessed_at", "retrieval_count", "last_retrieved_at", "vector_pending", "superseded_by", "content_truncated")
    ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    EVENT_AT_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ACCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ACCESSED_AT_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_RETRIEVED_AT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_PENDING_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    id: str
    scope: Scope
    content: str
    type: MemoryType
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: float
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    event_at: _timestamp_pb2.Timestamp
    valid_until: _timestamp_pb2.Timestamp
    state: MemoryState
    private: bool
    source: str
    revision: int
    access_count: int
    last_accessed_at: _timestamp_pb2.Timestamp
    retrieval_count: int
    last_retrieved_at: _timestamp_pb2.Timestamp
    vector_pending: bool
    superseded_by: str
    content_truncated: bool
    def __init__(self, id: _Optional[str] = ..., scope: _Optional[_Union[Scope, _Mapping]] = ..., content: _Optional[str] = ..., type: _Optional[_Union[MemoryType, str]] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[float] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state: _Optional[_Union[MemoryState, str]] = ..., private: _Optional[bool] = ..., source: _Optional[str] = ..., revision: _Optional[int] = ..., access_count: _Optional[int] = ..., last_accessed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retrieval_count: _Optional[int] = ..., last_retrieved_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., vector_pending: _Optional[bool] = ..., superseded_by: _Optional[str] = ..., content_truncated: _Optional[bool] = ...) -> None: ...

class TimeRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: _timestamp_pb2.Timestamp
    end: _timestamp_pb2.Timestamp
    def __init__(self, start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("types", "tags_any", "tags_all", "tags_none", "created", "event", "importance_min", "metadata", "states", "ids", "importance_below", "unused_since", "valid_until")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    TAGS_ANY_FIELD_NUMBER: _ClassVar[int]
    TAGS_ALL_FIELD_NUMBER: _ClassVar[int]
    TAGS_NONE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_MIN_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_BELOW_FIELD_NUMBER: _ClassVar[int]
    UNUSED_SINCE_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[MemoryType]
    tags_any: _containers.RepeatedScalarFieldContainer[str]
    tags_all: _containers.RepeatedScalarFieldContainer[str]
    tags_none: _containers.RepeatedScalarFieldContainer[str]
    created: TimeRange
    event: TimeRange
    importance_min: float
    metadata: _struct_pb2.Struct
    states: _containers.RepeatedScalarFieldContainer[MemoryState]
    ids: _containers.RepeatedScalarFieldContainer[str]
    importance_below: float
    unused_since: _timestamp_pb2.Timestamp
    valid_until: TimeRange
    def __init__(self, types: _Optional[_Iterable[_Union[MemoryType, str]]] = ..., tags_any: _Optional[_Iterable[str]] = ..., tags_all: _Optional[_Iterable[str]] = ..., tags_none: _Optional[_Iterable[str]] = ..., created: _Optional[_Union[TimeRange, _Mapping]] = ..., event: _Optional[_Union[TimeRange, _Mapping]] = ..., importance_min: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., states: _Optional[_Iterable[_Union[MemoryState, str]]] = ..., ids: _Optional[_Iterable[str]] = ..., importance_below: _Optional[float] = ..., unused_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until: _Optional[_Union[TimeRange, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("id", "scope", "source_id", "target_id", "type", "strength", "bidirectional", "metadata", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    BIDIRECTIONAL_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    scope: Scope
    source_id: str
    target_id: str
    type: LinkType
    strength: float
    bidirectional: bool
    metadata: _struct_pb2.Struct
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., scope: _Optional[_Union[Scope, _Mapping]] = ..., source_id: _Optional[str] = ..., target_id: _Optional[str] = ..., type: _Optional[_Union[LinkType, str]] = ..., strength: _Optional[float] = ..., bidirectional: _Optional[bool] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

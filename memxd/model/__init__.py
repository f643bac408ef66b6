"""The nouns of memxd as frozen dataclasses, and the limits they obey.

Owns the shapes that every layer below the wire passes around, their defaults and their bounds. Does not validate
(``engine/validate.py`` does, once), does not know SQL, arrays or protobuf. Everybody imports it; it imports only the
standard library and the errors.
"""

from memxd.model.answers import (
    Degradation,
    Explanation,
    Factor,
    Hit,
    LinkPage,
    Page,
    SearchAnswer,
    StoreAnswer,
    TermMatch,
    Traversal,
    Traversed,
)
from memxd.model.base import DAY, SECOND, Clock, IdFactory, Json, Limits, Micros
from memxd.model.changes import Change, Chunk, RowFeatures
from memxd.model.deadline import NO_DEADLINE, Deadline
from memxd.model.enums import (
    Dedup,
    DegradedCause,
    Direction,
    IndexKind,
    IndexState,
    LinkType,
    MemoryType,
    Mode,
    Order,
    Profile,
    RejectReason,
    State,
)
from memxd.model.instants import from_rfc3339, to_rfc3339
from memxd.model.moving import Conflict, ExportStep, ImportStep, LineRefusal
from memxd.model.nouns import NO_FILTER, Filter, Link, Memory, Scope, TimeRange, View
from memxd.model.requests import AS_THE_PROFILE, NewMemory, Patch, Ranking, SearchQuery
from memxd.model.status import BackupStep, EngineStatus, IndexStatus, ModelStatus, Problem, Progress, VerifyStep

__all__ = [
    "AS_THE_PROFILE",
    "DAY",
    "NO_DEADLINE",
    "NO_FILTER",
    "SECOND",
    "BackupStep",
    "Change",
    "Chunk",
    "Clock",
    "Conflict",
    "Deadline",
    "Dedup",
    "Degradation",
    "DegradedCause",
    "Direction",
    "EngineStatus",
    "Explanation",
    "ExportStep",
    "Factor",
    "Filter",
    "Hit",
    "IdFactory",
    "ImportStep",
    "IndexKind",
    "IndexState",
    "IndexStatus",
    "Json",
    "Limits",
    "LineRefusal",
    "Link",
    "LinkPage",
    "LinkType",
    "Memory",
    "MemoryType",
    "Micros",
    "Mode",
    "ModelStatus",
    "NewMemory",
    "Order",
    "Page",
    "Patch",
    "Problem",
    "Profile",
    "Progress",
    "Ranking",
    "RejectReason",
    "RowFeatures",
    "Scope",
    "SearchAnswer",
    "SearchQuery",
    "State",
    "StoreAnswer",
    "TermMatch",
    "TimeRange",
    "Traversal",
    "Traversed",
    "VerifyStep",
    "View",
    "from_rfc3339",
    "to_rfc3339",
]

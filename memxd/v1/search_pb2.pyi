import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from memxd.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SearchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_MODE_UNSPECIFIED: _ClassVar[SearchMode]
    SEARCH_MODE_HYBRID: _ClassVar[SearchMode]
    SEARCH_MODE_VECTOR: _ClassVar[SearchMode]
    SEARCH_MODE_KEYWORD: _ClassVar[SearchMode]

class RankingProfile(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RANKING_PROFILE_UNSPECIFIED: _ClassVar[RankingProfile]
    RANKING_PROFILE_BALANCED: _ClassVar[RankingProfile]
    RANKING_PROFILE_MEMX: _ClassVar[RankingProfile]
    RANKING_PROFILE_MEMEX: _ClassVar[RankingProfile]

class DedupMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEDUP_MODE_UNSPECIFIED: _ClassVar[DedupMode]
    DEDUP_MODE_OFF: _ClassVar[DedupMode]
    DEDUP_MODE_CONTENT: _ClassVar[DedupMode]
    DEDUP_MODE_TAGS: _ClassVar[DedupMode]
    DEDUP_MODE_ADAPTIVE: _ClassVar[DedupMode]
SEARCH_MODE_UNSPECIFIED: SearchMode
SEARCH_MODE_HYBRID: SearchMode
SEARCH_MODE_VECTOR: SearchMode
SEARCH_MODE_KEYWORD: SearchMode
RANKING_PROFILE_UNSPECIFIED: RankingProfile
RANKING_PROFILE_BALANCED: RankingProfile
RANKING_PROFILE_MEMX: RankingProfile
RANKING_PROFILE_MEMEX: RankingProfile
DEDUP_MODE_UNSPECIFIED: DedupMode
DEDUP_MODE_OFF: DedupMode
DEDUP_MODE_CONTENT: DedupMode
DEDUP_MODE_TAGS: DedupMode
DEDUP_MODE_ADAPTIVE: DedupMode

class FactorWeights(_message.Message):
    __slots__ = ("semantic", "recency", "frequency", "importance")
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    semantic: float
    recency: float
    frequency: float
    importance: float
    def __init__(self, semantic: _Optional[float] = ..., recency: _Optional[float] = ..., frequency: _Optional[float] = ..., importance: _Optional[float] = ...) -> None: ...

class Ranking(_message.Message):
    __slots__ = ("profile", "weights", "alpha", "half_life", "rrf_k", "vector_weight", "keyword_weight", "dedup", "reject", "tau")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_FIELD_NUMBER: _ClassVar[int]
    RRF_K_FIELD_NUMBER: _ClassVar[int]
    VECTOR_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DEDUP_FIELD_NUMBER: _ClassVar[int]
    REJECT_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    profile: RankingProfile
    weights: FactorWeights
    alpha: float
    half_life: _duration_pb2.Duration
    rrf_k: int
    vector_weight: float
    keyword_weight: float
    dedup: DedupMode
    reject: bool
    tau: float
    def __init__(self, profile: _Optional[_Union[RankingProfile, str]] = ..., weights: _Optional[_Union[FactorWeights, _Mapping]] = ..., alpha: _Optional[float] = ..., half_life: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., rrf_k: _Optional[int] = ..., vector_weight: _Optional[float] = ..., keyword_weight: _Optional[float] = ..., dedup: _Optional[_Union[DedupMode, str]] = ..., reject: _Optional[bool] = ..., tau: _Optional[float] = ...) -> None: ...

class Factor(_message.Message):
    __slots__ = ("value", "weight", "contribution")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    value: float
    weight: float
    contribution: float
    def __init__(self, value: _Optional[float] = ..., weight: _Optional[float] = ..., contribution: _Optional[float] = ...) -> None: ...

class TermMatch(_message.Message):
    __slots__ = ("term", "idf", "frequency", "score")
    TERM_FIELD_NUMBER: _ClassVar[int]
    IDF_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    term: str
    idf: float
    frequency: int
    score: float
    def __init__(self, term: _Optional[str] = ..., idf: _Optional[float] = ..., frequency: _Optional[int] = ..., score: _Optional[float] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("cosine", "vector_rank", "keyword_score", "keyword_rank", "rrf", "semantic", "recency", "frequency", "importance", "raw_score", "z_score", "terms", "chunk", "notes", "folded", "folded_ids")
    COSINE_FIELD_NUMBER: _ClassVar[int]
    VECTOR_RANK_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_SCORE_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_RANK_FIELD_NUMBER: _ClassVar[int]
    RRF_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    RAW_SCORE_FIELD_NUMBER: _ClassVar[int]
    Z_SCORE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    FOLDED_FIELD_NUMBER: _ClassVar[int]
    FOLDED_IDS_FIELD_NUMBER: _ClassVar[int]
    cosine: float
    vector_rank: int
    keyword_score: float
    keyword_rank: int
    rrf: float
    semantic: Factor
    recency: Factor
    frequency: Factor
    importance: Factor
    raw_score: float
    z_score: float
    terms: _containers.RepeatedCompositeFieldContainer[TermMatch]
    chunk: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    folded: int
    folded_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cosine: _Optional[float] = ..., vector_rank: _Optional[int] = ..., keyword_score: _Optional[float] = ..., keyword_rank: _Optional[int] = ..., rrf: _Optional[float] = ..., semantic: _Optional[_Union[Factor, _Mapping]] = ..., recency: _Optional[_Union[Factor, _Mapping]] = ..., frequency: _Optional[_Union[Factor, _Mapping]] = ..., importance: _Optional[_Union[Factor, _Mapping]] = ..., raw_score: _Optional[float] = ..., z_score: _Optional[float] = ..., terms: _Optional[_Iterable[_Union[TermMatch, _Mapping]]] = ..., chunk: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., folded: _Optional[int] = ..., folded_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Hit(_message.Message):
    __slots__ = ("memory", "rank", "score", "relevance", "explanation", "expanded", "expanded_from")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    EXPANDED_FIELD_NUMBER: _ClassVar[int]
    EXPANDED_FROM_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    rank: int
    score: float
    relevance: float
    explanation: Explanation
    expanded: bool
    expanded_from: str
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., rank: _Optional[int] = ..., score: _Optional[float] = ..., relevance: _Optional[float] = ..., explanation: _Optional[_Union[Explanation, _Mapping]] = ..., expanded: _Optional[bool] = ..., expanded_from: _Optional[str] = ...) -> None: ...

class StageTiming(_message.Message):
    __slots__ = ("stage", "micros")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    MICROS_FIELD_NUMBER: _ClassVar[int]
    stage: str
    micros: int
    def __init__(self, stage: _Optional[str] = ..., micros: _Optional[int] = ...) -> None: ...

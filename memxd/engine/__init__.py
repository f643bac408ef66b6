"""The verbs: storing, asking, changing, linking, on plain dataclasses; no gRPC, no protobuf, no HTTP here.

``engine`` is the face that the doors call; ``storing``, ``records``, ``links`` and ``search`` hold the verbs, the other
modules their parts. May import store, index, embed and _fast; is imported by service and bench.
"""

from memxd.engine.engine import Engine, Tuning
from memxd.engine.ids import system_clock, uuid7_factory
from memxd.engine.profiles import RankingDefaults

__all__ = ["Engine", "RankingDefaults", "Tuning", "system_clock", "uuid7_factory"]

"""The vector index: which memories mean something near a question.

``VectorIndex`` is the face; ``rows`` keeps the flat float16 file, ``manifest`` its durable state, ``graph`` the links
of USearch's graph; ``generation`` is these together, ``loading`` what a start finds; ``probe`` is the search itself;
``holder`` has the present generation, ``renewal`` makes the next one on the thread of ``upkeep``, ``build`` is the
child process that builds a graph. Owns the files of its directory. Called by the engine (searches) and the store's
writer (apply).
"""

from memxd.index.vector.hits import VectorHits
from memxd.index.vector.index import VectorIndex
from memxd.index.vector.loading import made_for
from memxd.index.vector.probe import Probe
from memxd.index.vector.tuning import VectorTuning

__all__ = ["Probe", "VectorHits", "VectorIndex", "VectorTuning", "made_for"]

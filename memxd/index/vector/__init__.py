"""The vector index: which memories mean something near a question.

``VectorIndex`` is the face; ``rows`` keeps the flat float16 file, ``manifest`` its durable state, ``graph`` the USearch
views; ``generation`` is these together and how the next one is made, ``loading`` what a start finds; ``probe`` is the
search itself, ``upkeep`` the thread that renews, ``build`` the child process that builds a graph. Owns the files of its
directory. Called by the engine (searches) and the store's writer (apply).
"""

from memxd.index.vector.hits import VectorHits
from memxd.index.vector.index import VectorIndex
from memxd.index.vector.tuning import VectorTuning

__all__ = ["VectorHits", "VectorIndex", "VectorTuning"]

"""Loads the two native libraries that do not get along, in the one order that works.

USearch loads a library of its own with global symbols; importing onnxruntime after that crashes the process, while the
other order is sound (seen with usearch 2.26.6 and onnxruntime 1.32.0 on Linux: ``python -c "import usearch.index,
onnxruntime"``). Whoever needs USearch in the daemon's process takes ``Index`` from here. Owns nothing else; the child
process that builds a graph has no model and needs no such care.
"""

import onnxruntime as onnxruntime  # isort: skip  (first)
from usearch.index import Index as Index

__all__ = ["Index", "onnxruntime"]

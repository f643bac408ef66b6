"""The one door to the two native libraries that need care at loading.

onnxruntime's official builds collect telemetry by default: a device id below the home folder and uploads. memxd uses
no network, so it is turned off here, in the only way that holds before the first event (``ORT_DISABLE_TELEMETRY``, as
onnxruntime's Privacy.md says), before the library loads. Hence nobody imports onnxruntime but through this module.

USearch loads a library of its own with global symbols; importing onnxruntime after that crashes the process, while the
other order is sound (seen with usearch 2.26.6 and onnxruntime 1.32.0 on Linux: ``python -c "import usearch.index,
onnxruntime"``). Whoever needs USearch in the daemon's process takes ``Index`` from here. The child process that builds
a graph has no model and needs no such care.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as onnxruntime
from usearch.index import Index as Index

__all__ = ["Index", "onnxruntime"]

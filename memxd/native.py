"""The one door to the two native libraries that need care at loading.

onnxruntime's official builds collect telemetry by default: a device id below the home folder and uploads. memxd uses
no network, so it is turned off here, in the only way that holds before the first event (``ORT_DISABLE_TELEMETRY``, as
onnxruntime's Privacy.md says), before the library loads. Hence nobody imports onnxruntime but through this module.

USearch loads a library of its own with global symbols; importing onnxruntime after that crashes the process (seen with
usearch 2.26.6 and onnxruntime 1.32.0 on Linux: ``python -c "import usearch.index, onnxruntime"``). The daemon does not
need it: graphs are built in a child process (``index/vector/build.py``). Who does need both takes ``Index`` from here,
which loads it when asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as onnxruntime

if TYPE_CHECKING:
    from usearch.index import Index as Index

__all__ = ["Index", "onnxruntime"]


def __getattr__(name: str) -> Any:
    if name != "Index":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from usearch.index import Index

    return Index

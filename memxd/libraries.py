"""Which versions of the libraries underneath are installed, for Status.

Owns their list. They are found out when somebody asks: that is thirty milliseconds which no start needs. ``daemon.py``
hands them on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property

#: What an answer or a file may depend on.
_NAMES = ("grpcio", "protobuf", "numpy", "usearch", "whoosh3", "onnxruntime", "sentencepiece")


class Libraries(Mapping[str, str]):
    """Versions by name; absent when not installed, for not every backend needs every library."""

    @cached_property
    def _versions(self) -> dict[str, str]:
        from importlib import metadata

        installed = {"python": sys.version.split()[0]}
        for name in _NAMES:
            try:
                installed[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue  # not every backend needs every library
        return installed

    def __getitem__(self, name: str) -> str:
        return self._versions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

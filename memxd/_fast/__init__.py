"""The kernels: tight loops over arrays, each as a pair of modules with the same functions and the same results.

``_name`` is compiled (Cython, GIL released for long runs), ``name_py`` is its plain Python twin: the oracle of the
tests, and what runs where no extension could be built. A pair answers equal ids, order and bits. Owns the choice
between them and nothing else; the daemon makes it once (``load_kernels``) and hands the ``Kernels`` down. Kernels
take and give numpy arrays and know nothing of memories, files or time. To add a pair, add one field to ``Kernels``
(typed by its protocol) and its twin to ``_TWINS``; setup.py finds the .pyx by itself.
"""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass, fields
from typing import Literal

from memxd._fast import bm25_py, choose_py, dot_py, rank_py, text_py
from memxd._fast.bm25_py import Bm25Kernel
from memxd._fast.protocols import ChooseKernel, DotKernel, RankKernel
from memxd._fast.text_py import TextKernel
from memxd.errors import ConfigError

__all__ = ["KERNEL_NAMES", "KernelChoice", "Kernels", "load_kernels"]

KernelChoice = Literal["auto", "c", "py"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kernels:
    """One set of kernel modules; ``name`` is "c" when every one is compiled, else "py" and every one is a twin."""

    name: Literal["c", "py"]
    rank: RankKernel
    dot: DotKernel
    bm25: Bm25Kernel
    text: TextKernel
    choose: ChooseKernel


_TWINS = Kernels(name="py", rank=rank_py, dot=dot_py, bm25=bm25_py, text=text_py, choose=choose_py)

#: The table of kernel modules: ``memxd._fast._<name>`` and its twin ``memxd._fast.<name>_py``.
KERNEL_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Kernels) if f.name != "name")


def load_kernels(choice: KernelChoice = "auto") -> Kernels:
    """The kernels to use: "c" compiled, "py" the twins, "auto" compiled or else, with a warning, the twins.

    It is all or nothing, so that one word says what runs. Raises ConfigError when "c" is asked for and an extension
    is missing or does not load.
    """
    if choice == "py":
        return _TWINS
    try:
        compiled = {name: importlib.import_module(f"{__name__}._{name}") for name in KERNEL_NAMES}
    except ImportError as error:
        if choice == "c":
            raise ConfigError(f"kernels = c, but a compiled kernel does not load: {error}") from error
        _log.warning("a compiled kernel does not load (%s): the slower Python kernels run instead", error)
        return _TWINS
    return Kernels(name="c", **compiled)

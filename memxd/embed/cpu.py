"""Whether this CPU multiplies int8 vectors natively, and how many cores this process may use.

Owns the guess that chooses between the i8 and q4 variants; ``default_model`` asks. Where the system does not say, the
golden vectors decide.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

_X86 = {"avx512_vnni", "avx_vnni", "avx_vnni_int8"}
_ARM = {"asimddp"}


def has_int8_dot(
    *, system: str | None = None, machine: str | None = None, cpuinfo: Path = Path("/proc/cpuinfo")
) -> bool | None:
    """True, False, or None when it cannot be told. Arguments stand in for the real machine in tests."""
    system = system or platform.system()
    machine = (machine or platform.machine()).lower()
    if system == "Darwin":
        # Every Apple chip has the ARMv8.4 dot product; Intel Macs differ and say it only through sysctl.
        return True if machine == "arm64" else None
    wanted = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(machine)
    if wanted is None:
        return None
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() in {"flags", "features"}:
            return not wanted.isdisjoint(value.split())
    return None


def cores() -> int:
    """Cores this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1

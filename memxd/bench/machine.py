"""The machine a run was made on, so that a figure is never told without it.

Owns reading what the operating system and the installed packages say; what cannot be read is "unknown". Called by
``runner`` once at the start. Linux tells everything; elsewhere less.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = (
    "numpy", "usearch", "whoosh3", "onnxruntime", "sentencepiece", "grpcio", "protobuf",
    "tantivy", "bm25s", "hnswlib", "matplotlib",
)  # fmt: skip


def describe(work: Path) -> dict[str, Any]:
    """CPU, cores, memory (GB), kind of the disk that holds ``work``, kernel, Python, libraries, load, git revision."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_gb": _memory_gb(),
        "disk": disk_kind(work),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": _libraries(),
        "load_at_start": round(load(), 2),
        "revision": revision(),
    }


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float:
    """Processes that wanted a core during the last minute."""
    return os.getloadavg()[0]


def resident_mb() -> float:
    """Resident memory of this process in MB (10^6 bytes); the most it ever was where the present is not told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1e6 if platform.system() == "Darwin" else most / 1e3


def disk_kind(folder: Path) -> str:
    """File system and kind of the device below ``folder``: "ext4 on vda (ssd)"."""
    try:
        device = folder.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == wanted:
            kind, source = rest.split()[:2]
            name = Path(source).name or source
            return f"{kind} on {name}" + (" (virtual)" if name.startswith(("vd", "xvd")) else _rotation(wanted))
    return "unknown"


def _rotation(device: str) -> str:
    """What the kernel says of the device; virtual disks claim anything."""
    for place in (f"/sys/dev/block/{device}/queue/rotational", f"/sys/dev/block/{device}/../queue/rotational"):
        try:
            return " (hard disk)" if Path(place).read_text().strip() == "1" else " (ssd)"
        except OSError:
            continue
    return ""


def revision() -> str:
    """The git commit of the sources, with "+" when they were changed; "" outside a repository."""
    root = Path(__file__).resolve().parent.parent.parent
    if not (root / ".git").exists():
        return ""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    return commit + ("+" if commit and _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""  # no git: nothing to tell
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or "unknown"


def _memory_gb() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (OSError, ValueError):
        return 0.0


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    import sqlite3

    return found | {"sqlite": sqlite3.sqlite_version}

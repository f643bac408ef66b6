"""Builds the kernels: every ``memxd/_fast/_*.pyx`` becomes the extension ``memxd._fast._*``.

Everything else about the package stands in pyproject.toml. A user's install goes on without an extension that does
not compile (each has a plain Python twin, and the daemon's log and Status say which runs);
``MEMXD_REQUIRE_EXTENSIONS=1`` makes that an error, as tests and releases need it. ``MEMXD_DEBUG_EXTENSIONS=1`` checks
array bounds and builds with the address and undefined-behaviour sanitizers (run it with libasan preloaded).
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FAST = Path("memxd/_fast")
DEBUG = os.environ.get("MEMXD_DEBUG_EXTENSIONS") == "1"
REQUIRED = os.environ.get("MEMXD_REQUIRE_EXTENSIONS") == "1"
# No fused multiply-add, no reordering and no -march=native: results equal the Python twins' bit for bit everywhere.
POSIX = os.name == "posix"
FLAGS = ["-O1" if DEBUG else "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"] if POSIX else []
SANITIZE = ["-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"] if DEBUG and POSIX else []
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "embedsignature": True,
    "binding": True,
}


def extensions() -> list[Extension]:
    """One extension for each .pyx; all of them are built again when a header changes."""
    headers = sorted(map(str, FAST.glob("*.h")))
    found = [
        Extension(
            f"memxd._fast.{source.stem}",
            [str(source)],
            include_dirs=[str(FAST)],
            depends=headers,
            extra_compile_args=FLAGS + SANITIZE,
            extra_link_args=SANITIZE,
            language="c",
        )
        for source in sorted(FAST.glob("*.pyx"))
    ]
    built: list[Extension] = cythonize(  # type: ignore[no-untyped-call]
        found, build_dir="build/cython", compiler_directives=DIRECTIVES
    )
    for extension in built:
        extension.optional = not REQUIRED  # cythonize() forgets it when set before
    return built


setup(ext_modules=extensions())

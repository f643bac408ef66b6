"""The command line: ``memx`` (a client of the daemon) and ``memxd`` (the daemon itself).

Owns the two console scripts. Nothing heavy is imported before it is needed: ``memx version`` loads neither gRPC nor
rich, and no verb of ``memx`` loads the engine. ``app.py`` shows how a call runs, ``scope.py`` how it finds its daemon.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def memx() -> NoReturn:
    """Console script ``memx``."""
    from memxd.cli.app import run_memx

    sys.exit(run_memx(sys.argv[1:]))


def memxd() -> NoReturn:
    """Console script ``memxd``, the same as ``python -m memxd``: ``memxd serve`` and ``memxd version``."""
    from memxd.__main__ import main

    sys.exit(main())

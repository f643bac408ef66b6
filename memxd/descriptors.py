"""File descriptors: as many as this process may have, most of them for callers, some kept for itself.

Owns the soft limit of open files and how many connections fit below it. A daemon that ran out could not open its own
database; a caller too many is turned away instead. Called by ``daemon.py`` at the start.
"""

from __future__ import annotations

import logging
import resource

log = logging.getLogger("memxd.daemon")

#: Enough for the callers of a machine, and as much as macOS gives.
_WANTED = 10_240
#: What the daemon itself opens at most: readers, index files, children and their pipes, a backup.
_OWN = 448
_MOST_CONNECTIONS = 8_192


def room_for_connections() -> int:
    """Raise the soft limit as far as is of use; answers how many connections may be open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # a sandbox forbids it: then fewer may connect
            log.info("open files stay limited", extra={"fields": {"limit": soft}})
    room = _WANTED if soft == resource.RLIM_INFINITY else soft
    return max(room // 2, min(_MOST_CONNECTIONS, room - _OWN))

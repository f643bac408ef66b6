"""Whether the way to a folder is safe: nobody else can put another folder or file in its place.

Owns the look at every folder above one, and at symbolic links on the way. The folder itself has rules of its own
(``socket_path.py``, ``service/socket.py``, ``data_dir.py``), which call this. Changes nothing.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path


def unsafe_way(folder: Path) -> str:
    """Why somebody else could replace ``folder`` (absolute; need not exist), in words; empty = nobody can.

    Each folder above must belong to this user or root and be closed to the writing of others, unless it is sticky
    (like /tmp: there nobody can rename what is another's). A group counts as others, unless it is the user's own. root
    does not mind whose the folders are: it often serves those of others.
    """
    trusted = _trusted_owners()
    for step in (*reversed(folder.parents), folder):
        if step.is_symlink() and not _belongs(os.lstat(step), trusted):
            return f"the symbolic link {step} is another user's (user {os.lstat(step).st_uid})"
    for above in reversed(Path(os.path.realpath(folder)).parents):
        try:
            info = os.stat(above)
        except FileNotFoundError:
            return ""  # made by us, further down
        if not _belongs(info, trusted):
            return f"{above} belongs to another user ({info.st_uid})"
        if _others_write(info) and not info.st_mode & stat.S_ISVTX:
            return f"others can write to {above} (mode {stat.S_IMODE(info.st_mode):04o})"
    return ""


def _belongs(info: os.stat_result, trusted: frozenset[int]) -> bool:
    return os.getuid() == 0 or info.st_uid in trusted


def _others_write(info: os.stat_result) -> bool:
    if info.st_mode & stat.S_IWOTH:
        return True
    if not info.st_mode & stat.S_IWGRP or info.st_gid == 0:
        return False
    return info.st_gid != _own_group()


def _own_group() -> int:
    """The user's primary group; with the usual private groups nobody else is in it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_gid
    except KeyError:  # an account that only a service manager knows
        return os.getgid()


def _trusted_owners() -> frozenset[int]:
    owners = {0, os.getuid()}
    if _maps_some():  # then root's files look like nobody's
        owners.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return frozenset(owners)


def _maps_some() -> bool:
    """Whether this process is in a user namespace that knows only some users, as in a sandboxed service."""
    try:
        fields = Path("/proc/self/uid_map").read_text().split()
    except OSError:  # not Linux
        return False
    return fields != ["0", "0", "4294967295"]

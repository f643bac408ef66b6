"""Where the socket is: the one rule that the daemon and every client share.

Owns the order of precedence, the replacement of over-long paths and the check of a folder that lies in a place where
anybody may create names. Does not create, lock or bind anything (``service/socket.py`` does). The daemon, the Python
client and the CLI call it; clients in other languages repeat it and run the vectors of
``clients/conformance/socket_path.json``. Imports only the standard library and ``memxd.errors``.

The rule: ``--socket``, else ``MEMXD_SOCKET``, else ``$XDG_RUNTIME_DIR/memxd/memxd.sock``, else
``<temporary folder>/memxd-<uid>/memxd.sock``. An empty value counts as absent, and so does a relative
``XDG_RUNTIME_DIR``. A path of more than 100 bytes is replaced by
``<temporary folder>/memxd-<uid>/<first 16 hex digits of its SHA-256>.sock``. The temporary folder is ``TMPDIR`` when
that is absolute, else ``/tmp``.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Mapping
from pathlib import Path

from memxd.errors import SocketPathError

#: Longest path used as it is, in bytes. The kernel's limit is 107 on Linux and 103 on macOS, with the final zero.
MAX_PATH_BYTES = 100
SOCKET_NAME = "memxd.sock"
ENVIRONMENT_NAME = "MEMXD_SOCKET"


def temporary_folder(environ: Mapping[str, str], uid: int | None = None) -> Path:
    """``<temporary folder>/memxd-<uid>``, the folder of last resort; it may not exist yet.

    Not ``tempfile.gettempdir()``: that probes for writability and falls back to the working directory, which no
    client in another language would guess.
    """
    base = environ.get("TMPDIR", "")
    if not base.startswith("/"):
        base = "/tmp"  # the folder below it is checked for owner and mode
    return Path(posixpath.normpath(base)) / f"memxd-{os.getuid() if uid is None else uid}"


def default_socket(environ: Mapping[str, str], uid: int | None = None) -> Path:
    """The path when nobody names one: below ``XDG_RUNTIME_DIR``, else in the folder of last resort."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(posixpath.normpath(runtime)) / "memxd" if runtime.startswith("/") else temporary_folder(environ, uid)
    return folder / SOCKET_NAME


def resolve_socket(
    explicit: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    *,
    uid: int | None = None,
    cwd: str | None = None,
) -> Path:
    """The absolute path to bind or to connect to, by the rule above. Touches no file.

    ``explicit`` is the value of ``--socket``; ``uid`` and ``cwd`` default to the process's own. Raises
    SocketPathError when the path holds a zero byte or even the replacement is too long.
    """
    chosen = os.fspath(explicit) if explicit is not None else ""
    chosen = chosen or environ.get(ENVIRONMENT_NAME, "") or str(default_socket(environ, uid))
    if "\0" in chosen:
        raise SocketPathError("the socket path holds a zero byte; give another --socket or MEMXD_SOCKET")
    path = _absolute(chosen, cwd)
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return Path(path)
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    short = temporary_folder(environ, uid) / f"{digest}.sock"
    if len(os.fsencode(short)) > MAX_PATH_BYTES:
        raise SocketPathError(
            f"the socket path {path} is over {MAX_PATH_BYTES} bytes and so is its replacement {short}; "
            "give a shorter --socket or MEMXD_SOCKET, or a shorter TMPDIR"
        )
    return short


def is_default_folder(folder: Path, environ: Mapping[str, str], uid: int | None = None) -> bool:
    """Whether the folder belongs to memxd alone by the rule (then it must be 0700), not to the caller."""
    return folder in (default_socket(environ, uid).parent, temporary_folder(environ, uid))


def check_private_folder(folder: Path, uid: int | None = None) -> None:
    """Refuse a folder that somebody else could have prepared or can look into.

    It must be a real directory (no symbolic link), owned by this user, of mode 0700. Raises SocketPathError that says
    what to do, FileNotFoundError when there is none.
    """
    owner = os.getuid() if uid is None else uid
    info = os.lstat(folder)
    if stat.S_ISLNK(info.st_mode) or not stat.S_ISDIR(info.st_mode):
        raise SocketPathError(f"{folder} is not a directory (or is a symbolic link); remove it, or give --socket")
    if info.st_uid != owner:
        raise SocketPathError(f"{folder} belongs to user {info.st_uid}, not to {owner}; remove it, or give --socket")
    mode = stat.S_IMODE(info.st_mode)
    if mode != 0o700:
        raise SocketPathError(
            f"{folder} has mode {mode:04o}, others could reach the socket; run: chmod 700 {folder} (or give --socket)"
        )


def client_socket(explicit: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Path:
    """The path a client connects to: as ``resolve_socket``, and a folder of last resort is checked when it exists.

    The check keeps a client from talking to a socket that another user planted in the shared temporary folder.
    """
    path = resolve_socket(explicit, environ)
    if path.parent == temporary_folder(environ):
        try:
            check_private_folder(path.parent)
        except FileNotFoundError:
            return path  # nobody serves there; connecting will say so
    _check_owner(path)
    return path


def _check_owner(path: Path) -> None:
    """A daemon's socket is its own user's alone: one of another user that we could open would be a trap."""
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return  # nobody serves there, or we cannot reach it; connecting will say so
    if owner not in (os.getuid(), 0) and os.getuid() != 0 and os.access(path, os.W_OK):
        raise SocketPathError(f"the socket {path} belongs to user {owner}, who could read everything; name another")


def _absolute(path: str, cwd: str | None) -> str:
    joined = posixpath.normpath(posixpath.join(cwd or os.getcwd(), path))
    return joined[1:] if joined.startswith("//") else joined  # POSIX keeps two leading slashes; no client would

"""Tokens: who may call, when ``auth = "token"``: their form, the file that keeps their hashes, and looking one up.

Owns ``tokens.json`` in the data directory (mode 0600, replaced in one step) and the comparing in constant time. A token
is ``mx_<id>_<secret>``, the secret 256 random bits. The file keeps SHA-256 of the whole token: a slow hash protects
secrets that people choose, nobody guesses 256 random bits. The file is no part of a backup, and a restore leaves it
alone: a stolen backup opens nothing, an old one does not bring a revoked token back.

Knows no gRPC and no call. ``memx token`` writes; the daemon (``service/guard.py``) reads, and sees a change at once.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memxd.errors import ConfigError, InvalidArgumentError
from memxd.locks import FileLock

FILE = "tokens.json"
PREFIX = "mx_"
_FORMAT = "memxd-tokens"
_VERSION = 1
_SECRET_BYTES = 32
_ID_BYTES = 4
#: Tokens that are kept at most, and bytes of the file that are read at most.
MOST = 1_000
_FILE_BYTES = 1 << 20
NAME_CHARACTERS = 64
_LOCK_SECONDS = 10.0
_SHAPE = re.compile(r"mx_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
#: What a token of an unknown id is compared with, so that it takes as long as one of a known id.
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. ``agent_id`` and ``user_id`` are its scope, None for an admin token; times in
    microseconds since 1970, ``expires_at`` None = never; ``hash`` is 64 hexadecimal digits.
    """

    id: str
    hash: str
    created_at: int
    name: str = ""
    admin: bool = False
    agent_id: str | None = None
    user_id: str | None = None
    expires_at: int | None = None

    def expired(self, now: int) -> bool:
        """Whether it no longer opens anything at ``now``."""
        return self.expires_at is not None and now >= self.expires_at

    def public(self) -> dict[str, Any]:
        """Everything but the hash, for people and programs."""
        return {name: value for name, value in asdict(self).items() if name != "hash"}


def hash_of(secret: str) -> str:
    """SHA-256 of a whole token, in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(tokens: Mapping[str, Token], secret: str) -> Token | None:
    """The token that is this secret, else None. Takes as long for a wrong secret as for an unknown id."""
    match = _SHAPE.fullmatch(secret)
    known = tokens.get(match[1]) if match else None
    same = hmac.compare_digest(hash_of(secret), known.hash if known else _NOBODY)
    return known if same else None


class TokenFile:
    """The tokens of a data directory."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = folder / "tokens.lock"

    def read(self) -> dict[str, Token]:
        """Every token by its id; none where there is no file. Raises ConfigError when the file is damaged, or not this
        user's alone: then it proves nothing.
        """
        handle = self.open()
        if handle is None:
            return {}
        try:
            return self.parse(handle)
        finally:
            os.close(handle)

    def open(self) -> int | None:
        """A descriptor of the file, None when there is none. Raises ConfigError for a link, or what is no file."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._wrong(f"cannot be read ({os.strerror(error.errno or 0)})") from error

    def parse(self, handle: int) -> dict[str, Token]:
        """What an open descriptor holds. Raises ConfigError as ``read``."""
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
            raise self._wrong("is not a file of this user; remove it and create tokens anew")
        if info.st_mode & 0o077:
            raise self._wrong(f"can be used by others (mode {stat.S_IMODE(info.st_mode):04o}); chmod 600 it")
        try:
            raw = os.pread(handle, _FILE_BYTES + 1, 0)
        except OSError as error:
            raise self._wrong(f"cannot be read ({os.strerror(error.errno or 0)})") from error
        try:
            if len(raw) > _FILE_BYTES:
                raise ValueError("too large")
            outer = json.loads(raw)
            if outer["format"] != _FORMAT or outer["version"] != _VERSION:
                raise ValueError("another format")
            return {token.id: token for token in map(_sound, outer["tokens"])}
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._wrong("is damaged, or of another version; remove it and create tokens anew") from error

    def create(
        self,
        now: int,
        *,
        scope: tuple[str, str] | None,
        name: str = "",
        expires_at: int | None = None,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> tuple[Token, str]:
        """Make a token for ``scope`` (agent id, user id; None = admin) and keep its hash; answers it and its secret,
        which is nowhere else. Raises InvalidArgumentError, ConfigError.
        """
        _check_name(name)
        if expires_at is not None and expires_at <= now:
            raise InvalidArgumentError.field("expires", "must lie in the future")
        with self._locked():
            tokens = self.read()
            if len(tokens) >= MOST:
                raise InvalidArgumentError.field("token", f"there are {MOST:,} tokens already; revoke some first")
            id = entropy(_ID_BYTES).hex()
            while id in tokens:
                id = entropy(_ID_BYTES).hex()
            secret = PREFIX + id + "_" + base64.urlsafe_b64encode(entropy(_SECRET_BYTES)).decode().rstrip("=")
            agent, user = scope if scope is not None else (None, None)
            token = Token(id, hash_of(secret), now, name, scope is None, agent, user, expires_at)
            self._write(tokens | {id: token})
        return token, secret

    def revoke(self, id: str) -> Token:
        """Forget a token. Raises InvalidArgumentError when there is none of this id."""
        with self._locked():
            tokens = self.read()
            gone = tokens.pop(id, None)
            if gone is None:
                raise InvalidArgumentError.field("id", "no token has this id; memx token list shows them")
            self._write(tokens)
        return gone

    def _locked(self) -> FileLock:
        return FileLock(self._lock, f"the tokens in {self.path}").acquire(_LOCK_SECONDS)

    def _write(self, tokens: Mapping[str, Token]) -> None:
        """Replace the file in one step; on disk when this returns: a revocation must outlive a power cut."""
        body = {"format": _FORMAT, "version": _VERSION, "tokens": [asdict(token) for token in tokens.values()]}
        fresh = self.path.with_name(f"{FILE}.{secrets.token_hex(8)}.new")
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(body, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with contextlib.suppress(OSError):  # what went wrong is told; the hash in it opens nothing
                fresh.unlink(missing_ok=True)
            raise self._wrong(f"cannot be written ({os.strerror(error.errno or 0)})") from error

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(f"the token file {self.path} {what}")


def _check_name(name: str) -> None:
    if len(name) > NAME_CHARACTERS or not name.isprintable():
        raise InvalidArgumentError.field("name", f"at most {NAME_CHARACTERS} printable characters")


def _sound(raw: Any) -> Token:
    """A token as it stands in the file. Raises ValueError, TypeError."""
    token = Token(**raw)
    texts = (token.id, token.hash, token.name)
    scope = (token.agent_id, token.user_id)
    if not all(isinstance(text, str) for text in texts) or not re.fullmatch(r"[0-9a-f]{8}", token.id):
        raise ValueError("not a token")
    if not re.fullmatch(r"[0-9a-f]{64}", token.hash) or not isinstance(token.admin, bool):
        raise ValueError("not a token")
    # One that is neither wholly for a scope nor wholly for everything opens nothing at all.
    if scope != (None, None) if token.admin else not all(isinstance(part, str) and part for part in scope):
        raise ValueError("not a token")
    if not isinstance(token.created_at, int) or not isinstance(token.expires_at, int | None):
        raise ValueError("not a token")
    return token

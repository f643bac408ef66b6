"""Who may call what, when ``auth = "token"``: from a call's metadata to what its token opens.

Owns the rule of each service (health is open, reflection wants any token, MemoryService opens the token's own scope,
everything else, also what is added one day, is the admin token's), and the confining of a request to that scope,
wherever in the message a scope stands. Tokens themselves are ``memxd/tokens.py``'s. The file is looked at for every
call and every message of a stream, so that a token that was revoked a moment ago opens nothing.

``interceptors.py`` asks at the head of each call; no servicer knows of it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from memxd.errors import ConfigError, PermissionDeniedError, UnauthenticatedError
from memxd.model import Scope
from memxd.tokens import Token, TokenFile, find
from memxd.v1 import memory_pb2, memory_service_pb2

log = logging.getLogger("memxd.guard")

_HEALTH = "/grpc.health.v1."
_REFLECTION = "/grpc.reflection."
_MEMORY = "/memxd.v1.MemoryService/"
_SCHEME = "bearer "
_SCOPE = memory_pb2.Scope.DESCRIPTOR.full_name
#: Erases much, and wants its scope spelled out: nothing is filled in here.
_SPELLED_OUT = frozenset({memory_service_pb2.DeleteManyRequest.DESCRIPTOR.full_name})

Metadata = Iterable[tuple[str, str | bytes]]


def _unknown() -> UnauthenticatedError:
    # The same for all three: whoever guesses learns nothing.
    return UnauthenticatedError("the token is not known, has expired or was revoked; ask for a new one")


def _foreign() -> PermissionDeniedError:
    return PermissionDeniedError("this token opens one scope, and the call names another; leave the scope out")


@dataclass(frozen=True, slots=True)
class Permit:
    """What one call may do. ``scope`` is the one that it is confined to; None = every one."""

    scope: Scope | None
    check: Callable[[], None]
    """Raises UnauthenticatedError once the token no longer holds."""

    def confine(self, message: Any) -> None:
        """Let the message mean the token's scope where it names none. Raises PermissionDeniedError where it names
        another."""
        if self.scope is not None:
            _confine(message, message.DESCRIPTOR, self.scope)

    def incoming(self, messages: Iterable[Any], unread: type) -> Iterator[Any]:
        """The messages of a caller's stream, each one checked when it comes; those of type ``unread`` as they are."""
        for message in messages:
            self.check()
            if not isinstance(message, unread):
                self.confine(message)
            yield message

    def outgoing(self, messages: Iterable[Any]) -> Iterator[Any]:
        """The answers of a stream, as long as the token holds."""
        for message in messages:
            self.check()
            yield message


#: What everybody may do where no token is asked for.
FREE = Permit(None, lambda: None)


class Guard:
    """Admits calls. ``tokens`` None = nobody is asked for one; ``clock`` in microseconds since 1970."""

    def __init__(self, tokens: TokenFile | None, clock: Callable[[], int] = lambda: time.time_ns() // 1_000) -> None:
        self._known = None if tokens is None else _Known(tokens)
        self._clock = clock

    @property
    def asks(self) -> bool:
        """Whether calls need a token."""
        return self._known is not None

    def admit(self, method: str, metadata: Metadata) -> Permit:
        """What a call of this method (its full path) may do. Raises UnauthenticatedError, PermissionDeniedError."""
        if self._known is None or method.startswith(_HEALTH):
            return FREE
        secret = _bearer(metadata)
        token = self._look_up(secret)
        if token.admin:
            scope = None
        elif method.startswith(_MEMORY):
            assert token.agent_id is not None
            assert token.user_id is not None
            scope = Scope(token.agent_id, token.user_id)
        elif method.startswith(_REFLECTION):
            scope = None  # it tells the contract, which everybody knows
        else:
            raise PermissionDeniedError("this call needs an admin token: memx token create --admin")
        return Permit(scope, lambda: self._hold(secret, token))

    def _look_up(self, secret: str) -> Token:
        assert self._known is not None
        token = find(self._known.tokens(), secret)
        if token is None or token.expired(self._clock()):
            raise _unknown()
        return token

    def _hold(self, secret: str, token: Token) -> None:
        """Raise unless the secret still is that very token."""
        if self._look_up(secret) != token:
            raise _unknown()


def open_guard(auth: str, data_dir: Path) -> Guard:
    """The guard that the setting ``auth`` asks for. Raises ConfigError when the tokens that are there prove nothing."""
    if auth == "off":
        return Guard(None)
    tokens = TokenFile(data_dir)
    if not tokens.read():
        log.warning("nobody has a token yet; make one: memx token create --admin")
    return Guard(tokens)


#: What no file looks like: it is read again at the next call.
_UNREAD = (-1,)


class _Known:
    """The tokens as the file has them at this moment. The file's descriptor is kept open: while it is, its inode
    number belongs to no other file, so that a replaced file never looks like the one that was read."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._seen: tuple[int, ...] | None = None
        self._told = ""  # what the log was last told is wrong with the file
        self._tokens: Mapping[str, Token] = {}

    def tokens(self) -> Mapping[str, Token]:
        """By id; none when the file is missing or proves nothing."""
        seen = _look(self._file)
        with self._lock:
            if seen != self._seen:
                self._read(seen)
            return self._tokens

    def _read(self, seen: tuple[int, ...] | None) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self._tokens, self._seen = {}, seen  # nobody is let in by what could not be read
        try:
            self._handle = self._file.open()
            if self._handle is not None:
                info = os.fstat(self._handle)
                self._tokens = self._file.parse(self._handle)
                self._seen = _mark(info)
        except ConfigError as error:
            if isinstance(error.__cause__, OSError):
                self._seen = _UNREAD  # out of descriptors, say: that passes without a change of the file
            if error.message != self._told:
                log.error("no token is believed", extra={"fields": {"reason": error.message}})
            self._told = error.message
        else:
            self._told = ""


def _look(file: TokenFile) -> tuple[int, ...] | None:
    try:
        return _mark(os.lstat(file.path))
    except OSError:
        return None  # then nobody is let in


def _mark(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode, info.st_uid)


def _bearer(metadata: Metadata) -> str:
    found = [value for key, value in metadata if key == "authorization"]
    if not found:
        raise UnauthenticatedError(
            "this daemon asks for a token and none was sent; give memx --token-file FILE or set MEMX_TOKEN, and in "
            "other clients send the metadata authorization: Bearer mx_..."
        )
    value = found[0]
    if len(found) > 1 or not isinstance(value, str) or not value.lower().startswith(_SCHEME):
        raise UnauthenticatedError("the authorization is not one bearer token; send authorization: Bearer mx_...")
    return value[len(_SCHEME) :].strip()


# -- where in a message a scope stands --------------------------------------------------------------------------------


def _confine(message: Any, descriptor: Descriptor, scope: Scope) -> None:
    own, nested = _plan(descriptor)
    for name in own:
        _confine_scope(message, name, scope, fill=descriptor.full_name not in _SPELLED_OUT)
    for field, inner in nested:
        value = getattr(message, field.name)
        if field.is_repeated:
            for each in value:
                _confine(each, inner, scope)
        elif message.HasField(field.name):
            _confine(value, inner, scope)
    if not own and not nested:
        raise _foreign()  # a request that says nothing of a scope may concern any


def _confine_scope(message: Any, name: str, scope: Scope, *, fill: bool) -> None:
    if not message.HasField(name) and not fill:
        return
    named = getattr(message, name)
    for part, mine in (("agent_id", scope.agent_id), ("user_id", scope.user_id)):
        if named.HasField(part):
            given = getattr(named, part)
            if given != mine and unicodedata.normalize("NFC", given).strip() != mine:
                raise _foreign()
        if fill or named.HasField(part):
            setattr(named, part, mine)  # as the store knows it, so that nobody reads it otherwise further down


#: Of a message: the names of its own scope fields, and its fields in whose messages there are some.
_Plan = tuple[tuple[str, ...], tuple[tuple[FieldDescriptor, Descriptor], ...]]
_plans: dict[str, _Plan] = {}


def _plan(descriptor: Descriptor) -> _Plan:
    known = _plans.get(descriptor.full_name)
    if known is None:
        messages = [(field, field.message_type) for field in descriptor.fields if field.message_type is not None]
        own = tuple(field.name for field, inner in messages if inner.full_name == _SCOPE)
        nested = tuple(
            (field, inner)
            for field, inner in messages
            if inner.full_name != _SCOPE and _holds_scope(inner, frozenset())
        )
        known = _plans[descriptor.full_name] = (own, nested)
    return known


def _holds_scope(descriptor: Descriptor, seen: frozenset[str]) -> bool:
    """Whether a scope stands anywhere in this message type. ``seen``: types that are being looked at already."""
    if descriptor.full_name == _SCOPE:
        return True
    if descriptor.full_name in seen:
        return False
    inner = (field.message_type for field in descriptor.fields)
    return any(_holds_scope(each, seen | {descriptor.full_name}) for each in inner if each is not None)

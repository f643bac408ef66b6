"""How a verb gets its scope, its daemon and its output; the flags that every verb takes.

Owns the common flags (before or after the verb), the filter flags, ``Session`` (what a verb works with) and ``verb``,
which registers a function as a verb: the function takes a Session and its own parameters, the common ones are added
here. A flag after the verb wins over one before it, that over the environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memxd.cli import values
from memxd.cli.render import Output
from memxd.cli.usage import Command, name_value, summary
from memxd.cli.words import StateWord, TypeWord
from memxd.errors import LinkNotFoundError, MemoryNotFoundError, MemxdError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from memxd.client import Client
    from memxd.model import Filter

#: Exit code when whoever read our output has gone, as for a process that SIGPIPE ended.
PIPE_CLOSED = 141


@dataclass(frozen=True, slots=True)
class Settings:
    """The common flags; None = not given."""

    agent: str | None = None
    user: str | None = None
    socket: str | None = None
    address: str | None = None
    token_file: str | None = None
    timeout: float | None = None
    no_start: bool | None = None
    json: bool | None = None

    def under(self, over: Settings) -> Settings:
        """These settings where ``over`` gives none."""
        given = {f.name: getattr(over, f.name) for f in fields(over) if getattr(over, f.name) is not None}
        return replace(self, **given)


_ENVIRONMENT = {"agent": "MEMX_AGENT", "user": "MEMX_USER", "socket": "MEMXD_SOCKET"}
_COMMON: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "agent": (str | None, ("--agent",), "Whose memory: the agent (default: MEMX_AGENT, else \"default\")."),
    "user": (str | None, ("--user",), "Whose memory: the person (default: MEMX_USER, else \"default\")."),
    "socket": (str | None, ("--socket",), "The daemon's socket (default: MEMXD_SOCKET, else the usual place)."),
    "address": (str | None, ("--address",), "tls://host:port in place of the socket (default: MEMX_ADDRESS)."),
    "token_file": (str | None, ("--token-file",), "File with a token (default: MEMX_TOKEN, MEMX_TOKEN_FILE)."),
    "timeout": (float | None, ("--timeout",), "Seconds a call may take (default: 10)."),
    "no_start": (bool | None, ("--no-start",), "Do not start a daemon when none answers."),
    "json": (bool | None, ("--json",), "Print JSON."),
}  # fmt: skip

#: The names of the common flags, and of those that concern the daemon, not a scope.
COMMON = tuple(_COMMON)
DAEMON = ("socket", "address", "token_file", "timeout", "no_start", "json")


def common_parameters(*, with_environment: bool) -> list[inspect.Parameter]:
    """The common flags; only those before the verb read the environment, so that it never wins over a flag."""
    parameters = []
    for name, (kind, flags, text) in _COMMON.items():
        extra: dict[str, Any] = {"min": 0.001} if name == "timeout" else {}
        option = typer.Option(
            *flags, help=text, show_default=False, envvar=_ENVIRONMENT.get(name) if with_environment else None, **extra
        )
        parameters.append(_parameter(name, Annotated[kind, option]))
    return parameters


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag(kind: Any, name: str, flags: str, text: str) -> inspect.Parameter:
    return _parameter(name, Annotated[kind | None, typer.Option(*flags.split(), help=text, show_default=False)])


_FILTER = (
    _flag(list[TypeWord], "types", "--type", "Only this type; repeat for more."),
    _flag(list[str], "tags_any", "--tag", "Carries at least one of these tags; repeat for more."),
    _flag(list[str], "tags_all", "--all-tags", "Carries this tag as well; repeat for more."),
    _flag(list[str], "tags_none", "--not-tag", "Does not carry this tag; repeat for more."),
    _flag(str, "since", "--since --after", "Stored at or after this time: " + values.TIME_HELP + "."),
    _flag(str, "until", "--until --before", "Stored before this time."),
    _flag(str, "older_than", "--older-than", "Stored longer ago than this: 90d, 12h, 8w."),
    _flag(str, "event_since", "--event-since", "Happened at or after this time."),
    _flag(str, "event_until", "--event-until", "Happened before this time."),
    _flag(float, "importance_min", "--min-importance", "At least this important, 0..1."),
    _flag(float, "importance_below", "--importance-below", "Less important than this, 0..1."),
    _flag(str, "unused_since", "--unused-since", "Neither stored, read nor found at or after this time."),
    _flag(bool, "expired", "--expired", "Active, but past its valid-until."),
    _flag(list[str], "meta", "--meta", "Metadata key=value; repeat for more."),
    _flag(list[StateWord], "states", "--state", "In this state (default: active and unexpired); repeat for more."),
)
_FILTER_NAMES = tuple(p.name for p in _FILTER)


def make_filter(given: dict[str, Any]) -> Filter | None:
    """The filter of the filter flags; None when none is given."""
    if not any(value is not None and value != [] for value in given.values()):
        return None
    from memxd.client import where

    expired = bool(given["expired"])
    return where(
        types=given["types"] or (),
        tags_any=given["tags_any"] or (),
        tags_all=given["tags_all"] or (),
        tags_none=given["tags_none"] or (),
        created=values.span(given["since"], _older_than(given), ""),
        event=values.span(given["event_since"], given["event_until"], "event-"),
        importance_min=given["importance_min"],
        metadata=values.metadata(given["meta"] or ()),
        states=given["states"] or (("active",) if expired else ()),
        importance_below=given["importance_below"],
        unused_since=values.maybe_when(given["unused_since"], "--unused-since"),
        valid_until=(None, datetime.now(UTC)) if expired else None,
    )


def _older_than(given: dict[str, Any]) -> str | None:
    """--until, or what --older-than means by it."""
    until, span = given["until"], given["older_than"]
    if span is None:
        return until if until is None else str(until)
    if until is not None:
        raise typer.BadParameter("says the same as --until; give one of them", param_hint="--older-than")
    values.length(span, "--older-than")
    return str(span)


class Session:
    """What a verb works with: the settings, the filter, the output, and the client once somebody asks for it."""

    def __init__(self, settings: Settings, filter: Filter | None = None) -> None:
        self.settings = settings
        self.filter = filter
        self.out = Output(as_json=bool(settings.json))
        self._open = ExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def client(self) -> Client:
        """The client, bound to the scope; starts a daemon when none answers, unless told not to."""
        if self._client is None:
            self._client = self._open.enter_context(self.connect(start=not self.settings.no_start))
        return self._client

    @property
    def socket(self) -> Path:
        """Where the daemon is expected."""
        from memxd.config import process_environ
        from memxd.socket_path import client_socket

        return client_socket(self.settings.socket, process_environ())

    @property
    def address(self) -> str:
        """The TCP address in place of the socket; empty = none. A socket that is named wins over the environment."""
        from memxd.config import process_environ

        if self.settings.address is not None:
            return self.settings.address
        return "" if self.settings.socket else process_environ().get("MEMX_ADDRESS", "")

    def connect(self, *, start: bool) -> Client:
        """A client of its own. ``start`` False: a daemon that does not answer is an error at once."""
        from memxd.client import NO_RETRY, Client, read_token
        from memxd.client.connection import DEFAULT_TIMEOUT

        given = self.settings
        start = start and not self.address  # whoever serves there is not ours to start
        socket = None if self.address else self.socket
        if start:
            from memxd.autostart import ensure_daemon

            ensure_daemon(socket)
        return Client(
            socket,
            address=self.address or None,
            token=None if given.token_file is None else read_token(given.token_file),
            agent_id=given.agent,
            user_id=given.user,
            timeout=given.timeout or DEFAULT_TIMEOUT,
            retry=None if start else NO_RETRY,
        )


def verb(
    app: typer.Typer, name: str, *, filters: bool = False, takes: Sequence[str] = COMMON
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function ``(session, ...)`` as a verb; ``filters`` adds the filter flags, as ``session.filter``.

    ``takes`` names the common flags that mean something to it; before the verb all of them are allowed.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = _FILTER if filters else ()
        common = [p for p in common_parameters(with_environment=False) if p.name in takes]

        def run(context: typer.Context, **given: Any) -> None:
            after = Settings(**{n: given.pop(n) for n in takes})
            before = context.find_root().obj
            settings = before.under(after) if isinstance(before, Settings) else after
            flags = {name: given.pop(name) for name in _FILTER_NAMES} if filters else {}
            try:
                with Session(settings, make_filter(flags)) as session:
                    function(session, **given)
            except BrokenPipeError:
                raise typer.Exit(PIPE_CLOSED) from None  # else typer ends the process with 1
            except MemxdError as error:
                _name_scope(error, settings)
                raise

        _describe(run, function, [*own, *added, *common])
        app.command(name, cls=Command, short_help=summary(function))(run)
        return function

    return register


def _name_scope(error: MemxdError, settings: Settings) -> None:
    """Whoever looks in the wrong scope finds nothing: say which one it was. Only the client knows whether to tell."""
    if isinstance(error, MemoryNotFoundError | LinkNotFoundError):
        agent, user = settings.agent or "default", settings.user or "default"
        error.message += f" (agent {agent!r}, user {user!r}; --agent and --user name another)"


def _describe(run: Callable[..., None], function: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Give ``run`` the name, help and signature that typer reads."""
    for parameter in parameters:
        name_value(parameter)
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {p.name: p.annotation for p in (context, *keyword)}
    vars(run)["__signature__"] = inspect.Signature([context, *keyword])

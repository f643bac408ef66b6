"""``memx token``: making, listing and revoking tokens, for a daemon with ``auth = "token"``.

Owns the flags and the printing; the file is ``memxd/tokens.py``'s. Works on the data directory, without a daemon: a
running one sees every change at once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memxd.cli import values
from memxd.cli.render import Column, local, moment
from memxd.cli.scope import Session, verb
from memxd.errors import InvalidArgumentError

if TYPE_CHECKING:
    from memxd.config import Config
    from memxd.tokens import Token, TokenFile

_COLUMNS = (
    Column("id", style="bold"),
    Column("opens", grow=True, fold=True),
    Column("name"),
    Column("made"),
    Column("expires"),
)
#: The common flags of verbs that work on files, without a daemon.
_FILES = ("json",)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Tokens for agents, when the setting auth is token.", no_args_is_help=True, rich_markup_mode=None
    )
    verb(group, "create", takes=_FILES)(create)
    verb(group, "list", takes=_FILES)(list_tokens)
    verb(group, "revoke", takes=_FILES)(revoke)
    app.add_typer(group, name="token")


def _open() -> tuple[TokenFile, Config]:
    from memxd.config import Config
    from memxd.data_dir import prepare_data_dir
    from memxd.tokens import TokenFile

    config = Config.load()
    prepare_data_dir(config.data_dir)
    return TokenFile(config.data_dir), config


def _now() -> int:
    return time.time_ns() // 1_000


def create(
    session: Session,
    scope_user: Annotated[str | None, typer.Option("--scope-user", help="Whose memory it opens: the person.")] = None,
    scope_agent: Annotated[str | None, typer.Option("--scope-agent", help="Whose memory it opens: the agent.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="It opens every scope, and what operators call.")] = False,
    name: Annotated[str, typer.Option(help="A word to know it by, in the list.")] = "",
    expires: Annotated[str | None, typer.Option(help=f"When it ends: {values.TIME_HELP} (never).")] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Write it to this new file, for --token-file.")] = None,
) -> None:
    """Make a token and show it, this once; a part of the scope that is not given is "default"."""
    from memxd.engine.validate import scope as sound
    from memxd.model import Scope

    if admin == (scope_user is not None or scope_agent is not None):
        raise InvalidArgumentError.field("--admin", "give either --admin, or --scope-user and --scope-agent")
    scope = sound(Scope(scope_agent or "default", scope_user or "default"))
    if to is not None and os.path.lexists(to):
        raise InvalidArgumentError.field("--to", "is there already; name a new file")
    end = values.maybe_when(expires, "--expires")
    tokens, config = _open()
    token, secret = tokens.create(
        _now(),
        scope=None if admin else (scope.agent_id, scope.user_id),
        name=name,
        expires_at=None if end is None else int(end.timestamp() * 1_000_000),
    )
    if to is not None:
        _write(to, secret, tokens, token.id)
    if session.out.as_json:
        session.out.json({**token.public(), **({"file": str(to)} if to is not None else {"token": secret})})
    else:
        session.out.line(str(to) if to is not None else secret)
        session.out.note(f"token {token.id} opens {_opens(token)}; it cannot be shown again")
    if config.auth != "token":
        session.out.note('the daemon asks for no token yet: set auth = "token" in its settings and restart it')


def _write(path: Path, secret: str, tokens: TokenFile, id: str) -> None:
    """A file that only this user may read; where that fails the token is revoked, since nobody will know it."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secret + "\n")
    except OSError as error:
        tokens.revoke(id)
        raise InvalidArgumentError.field("--to", f"cannot be written: {os.strerror(error.errno or 0)}") from error


def _opens(token: Token) -> str:
    return "everything" if token.admin else f"agent {token.agent_id}, user {token.user_id}"


def list_tokens(session: Session) -> None:
    """List the tokens that are there, never their secrets."""
    tokens, _ = _open()
    found = sorted(tokens.read().values(), key=lambda token: (token.created_at, token.id))
    now = _now()
    if session.out.as_json:
        session.out.json({"tokens": [{**token.public(), "expired": token.expired(now)} for token in found]})
        return
    session.out.table(
        _COLUMNS,
        [(token.id, _opens(token), token.name, local(token.created_at), _end(token, now)) for token in found],
    )


def _end(token: Token, now: int) -> str:
    if token.expires_at is None:
        return "never"
    return f"expired {local(token.expires_at)}" if token.expired(now) else moment(token.expires_at)


def revoke(session: Session, id: Annotated[str, typer.Argument(help="Its id, as memx token list shows it.")]) -> None:
    """Take a token's rights away, at once; calls that are under way with it end."""
    tokens, _ = _open()
    gone = tokens.revoke(id)
    if session.out.as_json:
        session.out.json(gone.public())
    else:
        session.out.line(f"token {gone.id} opens nothing any more")

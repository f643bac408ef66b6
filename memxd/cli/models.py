"""``memx models``: which embedding models this machine has, adding, choosing and verifying one.

Owns the flags and the printing. Everything about model files is ``memxd/embed/models.py``, imported inside the
functions, since it is heavy. Works on the files; a running daemon is asked how far a change of model is, and restarted
for one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from memxd.cli import model_change
from memxd.cli.render import Column, size
from memxd.cli.scope import DAEMON, Session, verb

if TYPE_CHECKING:
    from memxd.config import Config

_COLUMNS = (
    Column("", style="green"),
    Column("name", style="bold"),
    Column("from"),
    Column("dimensions", right=True),
    Column("window", right=True),
    Column("form"),
    Column("size", right=True),
    Column("problem", style="red", grow=True),
)
#: The common flags of verbs that work on files, without a daemon.
_FILES = ("json",)
Name = Annotated[str | None, typer.Argument(help="Its name, or a folder's path (default: the one in use).")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The embedding models on this machine.", cls=_ListAlone, rich_markup_mode=None)
    verb(group, "list", takes=DAEMON)(list_models)
    verb(group, "add", takes=_FILES)(add)
    verb(group, "use", takes=DAEMON)(use)
    verb(group, "verify", takes=_FILES)(verify)
    app.add_typer(group, name="models")


class _ListAlone(TyperGroup):
    """``memx models`` alone lists."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {"--help", *self.commands}
        return list(super().parse_args(ctx, args if known & set(args[:1]) else ["list", *args]))


def _config() -> Config:
    from memxd.config import Config

    return Config.load()


def list_models(session: Session) -> None:
    """List them: the chosen one is marked, a change under way is told, files are looked through."""
    from memxd.embed import models

    config = _config()
    found = models.list_models(config.data_dir)
    current = _chosen(config)
    daemon = model_change.running(session)
    if session.out.as_json:
        facts: dict[str, Any] = {"models": [{**_plain(m), "in_use": m.name == current} for m in found]}
        if daemon is not None:
            facts |= {"serving": daemon[0], "change": daemon[1]}
        session.out.json(facts)
        return
    session.out.table(
        _COLUMNS,
        [
            (
                "*" if m.name == current else "",
                m.name,
                m.origin,
                str(m.dimension),
                str(m.window_tokens),
                m.variant,
                size(m.size_bytes),
                m.problem or _damage(config, m.name),
            )
            for m in found
        ],
    )
    if current == "":
        session.out.note(f"the settings choose none of these: embedder {config.embedder}")
    if daemon is not None:
        session.out.line(f"the daemon answers with {daemon[0].id}")
        if daemon[1] is not None:
            session.out.line(f"every memory is embedded again, {model_change.words(daemon[1])}")


def _chosen(config: Config) -> str:
    """The name of the model that the settings name; "" for one that is no model on this machine."""
    from memxd.embed import models

    return models.find_model(config.data_dir, config.model).name if config.embedder == "onnx" else ""


def _damage(config: Config, name: str) -> str:
    """What is wrong with its files by their checksums."""
    from memxd.embed import models
    from memxd.embed.convert import NAME

    damaged = models.damaged_model_files(config.data_dir, "" if name == NAME else name)
    return f"missing or damaged: {', '.join(damaged)}" if damaged else ""


def _plain(model: object) -> dict[str, object]:
    from dataclasses import asdict

    shown = asdict(model)  # type: ignore[call-overload]
    return {key: str(value) if isinstance(value, Path) else value for key, value in shown.items()}


def add(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="A folder with model.onnx, tokenizer.json and a manifest.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an installed model of this name.")] = False,
) -> None:
    """Check a model folder by running it, and copy it to the models of this machine."""
    from memxd.embed import models

    model = models.add_model(_config().data_dir, folder, overwrite=overwrite)
    if session.out.as_json:
        session.out.json(_plain(model))
    else:
        session.out.line(
            f"added {model.name} ({model.dimension} dimensions); choose it with: memx models use {model.name}"
        )


def use(
    session: Session,
    name: Annotated[str, typer.Argument(help="Its name, or a folder's path; \"default\" = memxd's own.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every memory is embedded again.")] = False,
    no_restart: Annotated[bool, typer.Option("--no-restart", help="Only write the choice down.")] = False,
) -> None:
    """Choose a model. The daemon is restarted for it and embeds every memory again, while it serves."""
    from memxd.config import config_file, process_environ
    from memxd.embed import models
    from memxd.operation.config_file import write_settings

    name = "" if name == "default" else name
    config = _config()
    model = models.find_model(config.data_dir, name)
    path = config_file(process_environ())
    write_settings(path, {"model": name} | ({} if config.embedder == "onnx" else {"embedder": "onnx"}))
    ended = 0 if no_restart else model_change.restart(session)
    facts: dict[str, Any] = {"model": name, "id": model.id, "config_file": str(path), "restarted": bool(ended)}
    change = None
    if ended or wait:
        change = session.client.status(max_scopes=0).engine.model_change
        if wait and change is not None:
            change = model_change.wait(session)
    if session.out.as_json:
        session.out.json({**facts, "change": change})
        return
    session.out.line(f"{model.name} is chosen in {path}")
    if change is not None:
        session.out.line(f"every memory is embedded again, {model_change.words(change)}")
        session.out.note("memx models tells how far it is")
    elif ended or wait:
        session.out.line("the daemon uses it for every memory")
    else:
        session.out.note("the daemon takes it at its next start, and embeds every memory again while it serves")


def verify(session: Session, name: Name = None) -> None:
    """Hash a model's files and compute its golden vectors again."""
    from memxd.embed import models

    config = _config()
    found = models.verify_model(config.data_dir, config.model if name is None else name)
    if session.out.as_json:
        session.out.json(_plain(found))
    else:
        cosine = "none to compare" if found.golden_cosine is None else f"cosine {found.golden_cosine:.5f}"
        session.out.fields(
            [
                ("model", found.name),
                ("id", found.id),
                ("damaged files", ", ".join(found.damaged)),
                ("golden vectors", cosine),
                ("problem", found.problem),
            ]
        )
    if found.problem:
        raise typer.Exit(5)
    if not session.out.as_json:
        session.out.line("sound")

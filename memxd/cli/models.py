"""``memx models``: which embedding models this machine has, adding, choosing and verifying one.

Owns the flags and the printing. Everything about model files is
``memxd/embed/models.py``, imported inside the functions, since it is heavy. Works on the files, without a daemon.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memxd.cli.render import Column, size
from memxd.cli.scope import Session, verb

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
    group = typer.Typer(help="The embedding models on this machine.", no_args_is_help=True, rich_markup_mode=None)
    verb(group, "list", takes=_FILES)(list_models)
    verb(group, "add", takes=_FILES)(add)
    verb(group, "use", takes=_FILES)(use)
    verb(group, "verify", takes=_FILES)(verify)
    app.add_typer(group, name="models")


def _config() -> Config:
    from memxd.config import Config

    return Config.load()


def list_models(session: Session) -> None:
    """List them; the one the daemon uses after its next start is marked."""
    from memxd.embed import models

    config = _config()
    found = models.list_models(config.data_dir)
    current = models.find_model(config.data_dir, config.model).name
    if session.out.as_json:
        session.out.json({"models": [{**_plain(m), "in_use": m.name == current} for m in found]})
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
                m.problem,
            )
            for m in found
        ],
    )


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


def use(session: Session, name: Annotated[str, typer.Argument(help='Its name; "default" = memxd\'s own.')]) -> None:
    """Write the choice to the config file; the daemon takes it at its next start."""
    from memxd.config import config_file, process_environ
    from memxd.embed import models
    from memxd.operation.config_file import write_settings

    name = "" if name == "default" else name
    model = models.find_model(_config().data_dir, name)
    path = config_file(process_environ())
    write_settings(path, {"model": name})
    if session.out.as_json:
        session.out.json({"model": name, "id": model.id, "config_file": str(path)})
        return
    session.out.line(f"{model.name} is chosen in {path}; restart the daemon to use it")
    session.out.note("vectors of another model are set aside: until they are made anew, questions find by words only")


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

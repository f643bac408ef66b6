"""How a command line runs, from its words to its exit code.

Owns the table of verbs, which module has which, the exit codes and the way every error is told: on standard error, in
one or two lines, what, which field and what to do next, never a traceback. Only the module of the verb that is asked
for is imported. Called by the console script.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.completion import get_completion_inspect_parameters

from memxd.cli.render import harmless
from memxd.cli.scope import PIPE_CLOSED, Settings, common_parameters
from memxd.cli.usage import name_value
from memxd.errors import (
    ConfigError,
    DaemonUnreachableError,
    InvalidArgumentError,
    MemxdError,
    ModelFileError,
    ServiceManagerError,
    SocketPathError,
    StartupError,
)

OK, USAGE, NOT_FOUND, UNREACHABLE, REFUSED, INTERRUPTED = 0, 2, 3, 4, 5, 130

EPILOG = (
    "Exit codes: 0 done; 1 nothing known (search); 2 wrong usage or an invalid value; 3 no such memory or link; "
    "4 no daemon answers; 5 refused or failed for another reason; 130 interrupted."
)
#: Which module registers which verbs of memx, in the order of the help.
VERBS = {
    "memxd.cli.memories": ("add", "get", "edit"),
    "memxd.cli.forgetting": ("forget", "archive", "unarchive"),
    "memxd.cli.search": ("search",),
    "memxd.cli.listing": ("list", "count"),
    "memxd.cli.links": ("link", "unlink", "links", "related"),
    "memxd.cli.admin": ("status", "flush", "rebuild", "version", "completion"),
    "memxd.cli.moving": ("backup", "restore", "verify", "compact"),
    "memxd.cli.lines": ("export", "import"),
    "memxd.cli.models": ("models",),
    "memxd.cli.setup": ("setup", "uninstall"),
    "memxd.cli.settings": ("config",),
    "memxd.cli.token": ("token",),
    "memxd.cli.service": ("service", "stop"),
    "memxd.cli.doctor": ("doctor",),
    "memxd.cli.bench": ("bench",),
}


def memx_app(arguments: Sequence[str]) -> typer.Typer:
    """The application with the verb asked for, or with all of them for help, completion and misspelt verbs."""
    app = _application("Long-term memory for AI agents: store, ask, correct, link.")
    _describe_callback(app)
    if not arguments:  # a shell that completes calls us so; making these parameters teaches typer the shells
        get_completion_inspect_parameters()
    verbs = {verb: module for module, names in VERBS.items() for verb in names}
    # Only a leading verb is surely one: in `memx --agent list add x` the first word of the table is not.
    asked = verbs.get(arguments[0]) if arguments else None
    for module in VERBS if asked is None else (asked,):
        importlib.import_module(module).register(app)
    return app


def _application(text: str) -> typer.Typer:
    return typer.Typer(
        help=text,
        epilog=EPILOG,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _describe_callback(app: typer.Typer) -> None:
    """The common flags before the verb."""

    def callback(context: typer.Context, **given: Any) -> None:
        context.obj = Settings(**given)

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *common_parameters(with_environment=True)]
    for parameter in parameters[1:]:
        name_value(parameter)
    callback.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(callback)["__signature__"] = inspect.Signature(parameters)
    app.callback()(callback)


def run_memx(arguments: Sequence[str], program: str = "memx") -> int:
    """Carry out a ``memx`` command line; answers the exit code. ``program`` is how it was called."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a C locale must not break on the first umlaut
    try:
        if list(arguments) in (["--version"], ["-V"]):
            arguments = ["version"]
        command = typer.main.get_command(memx_app(arguments))
        code = command.main(args=list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except typer.TyperException as error:
        return _tell_usage(program, error)
    except MemxdError as error:
        _tell(program, _message(error))
        return exit_code(error)
    except Exception as error:  # the last line of defence: told, never shown as a traceback
        _tell(program, f"internal error: {type(error).__name__} at {_place(error)}: {error}; please report this")
        return REFUSED


def exit_code(error: MemxdError) -> int:
    """The exit code of a refusal."""
    if isinstance(error, InvalidArgumentError | ConfigError | SocketPathError):
        return USAGE
    if error.reason.endswith("_NOT_FOUND"):
        return NOT_FOUND
    if isinstance(error, ModelFileError | ServiceManagerError):
        return REFUSED
    return UNREACHABLE if isinstance(error, DaemonUnreachableError | StartupError) else REFUSED


def _message(error: MemxdError) -> str:
    """What, and which fields; the message names the field already when there is one."""
    missing = [f"{v.field}: {v.description}" for v in error.violations if v.description not in error.message]
    text = "; ".join([error.message, *missing])
    known = error.metadata.get("id")
    if known and error.reason.endswith("_ALREADY_EXISTS"):
        text += f" (as {known})"
    log_id = error.metadata.get("log_id")
    return f"{text} (log id {log_id})" if log_id and log_id not in text else text


def _tell_usage(program: str, error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(error.message + "\n")
        return USAGE
    path = context.command_path if context is not None else program
    text = error.format_message().replace("Value error, ", "").removeprefix("Invalid value: ")
    _tell(program, text.strip().rstrip(".") + f"\nsee `{path} --help`")
    return USAGE


def _tell(program: str, text: str) -> None:
    if not sys.stdout.closed:
        sys.stdout.flush()
    sys.stderr.write(f"{program}: {harmless(text)}\n")


def _place(error: Exception) -> str:
    trace = error.__traceback__
    place = "?"
    while trace is not None:
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place

"""``memx bench``: how fast memxd is on this machine, beside its peers.

Owns the name only: every argument goes to ``memxd.bench.main``, which is imported inside the function, since it needs
everything below the daemon and the extra ``bench``.
"""

from __future__ import annotations

import typer

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def register(app: typer.Typer) -> None:
    app.command(
        "bench",
        context_settings=_PASSED_ON,
        short_help="Measure speed beside peers; `memx bench speed --help` tells the flags.",
    )(bench)


def bench(context: typer.Context) -> None:
    """Measure how fast memxd is on this machine, beside its peers (pip install 'memxd[bench]')."""
    from memxd.bench.main import main
    from memxd.config import process_environ

    raise typer.Exit(main(context.args, process_environ(), program="memx bench"))

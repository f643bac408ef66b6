"""The command line of the bench: ``memx bench ...`` and ``python -m memxd.bench ...``.

Owns the flags and where reports go; ``runner`` measures, ``tables`` and ``plots`` show. ``speed`` measures, ``compare``
lays two reports side by side. ``memxd.cli.bench`` hands its arguments over.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memxd.bench.progress import Progress
from memxd.errors import InvalidArgumentError, MemxdError

#: Exit codes: a budget is missed; wrong usage; a question failed, or something is not installed.
MISSED, USAGE, FAILED = 1, 2, 5


def main(arguments: Sequence[str], environ: Mapping[str, str], program: str = "python -m memxd.bench") -> int:
    """Run a command line; the exit code: 0 done, 1 a judged budget was missed, 2 wrong usage, 5 it failed."""
    given = _parser(program).parse_args(arguments)
    command = shlex.join([*program.split(), *arguments])
    try:
        return _compare(given) if given.what == "compare" else _speed(given, environ, command)
    except InvalidArgumentError as error:
        print(f"{program}: {error.message}", file=sys.stderr)
        return USAGE
    except MemxdError as error:
        print(f"{program}: {error.message}", file=sys.stderr)
        return FAILED


def _parser(program: str) -> argparse.ArgumentParser:
    from memxd.bench.registry import QUESTIONS

    parser = argparse.ArgumentParser(prog=program, description="How fast memxd is, beside its peers.")
    commands = parser.add_subparsers(dest="what", required=True, metavar="speed|compare")
    speed = commands.add_parser("speed", help="measure, and hold the figures against the budgets")
    speed.add_argument("--quick", action="store_true", help="small stores, few samples: some minutes, for function")
    speed.add_argument("--data", type=Path, metavar="DIR", help="a set of texts (corpus.jsonl.gz); default: generated")
    speed.add_argument("--work", type=Path, metavar="DIR", help="where stores are built and kept (default: the cache)")
    speed.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: below --work)")
    speed.add_argument("--sizes", default="", metavar="N,...", help="store sizes, such as 10k,220349,1m")
    names = ", ".join(q.name for q in QUESTIONS)
    speed.add_argument("--only", default="", metavar="NAMES", help=f"these questions alone: {names}")
    speed.add_argument("--fresh", action="store_true", help="build stores anew; forget an interrupted run")
    speed.add_argument("--seed", type=int, default=7, help="of texts, vectors and samples (default: 7)")
    speed.add_argument("--hashing", action="store_true", help="without the embedding model")
    speed.add_argument("--strict", action="store_true", help="a peer that is not installed is an error")
    speed.add_argument("--json", action="store_true", help="print the report as JSON")
    speed.add_argument("--write-docs", type=Path, metavar="DIR", help="put tables and plots into DIR/PERFORMANCE.md")
    compare = commands.add_parser("compare", help="two reports side by side")
    compare.add_argument("old", type=Path, help="report.json, or its folder")
    compare.add_argument("new", type=Path, help="report.json, or its folder")
    return parser


def _speed(given: argparse.Namespace, environ: Mapping[str, str], command: str) -> int:
    try:
        from memxd.bench import runner, tables
        from memxd.bench.context import FULL_SIZES, QUICK_SIZES, Options
        from memxd.bench.report import write
    except ImportError as error:
        raise InvalidArgumentError(f"the bench needs {error.name}; pip install 'memxd[bench]'") from error
    work = (given.work or cache_folder(environ)).expanduser().absolute()
    out = (given.out or work / ("report-quick" if given.quick else "report")).expanduser().absolute()
    options = Options(
        work=work,
        out=out,
        data=given.data and given.data.expanduser().absolute(),
        sizes=parse_sizes(given.sizes) or (QUICK_SIZES if given.quick else FULL_SIZES),
        only=tuple(filter(None, given.only.split(","))),
        quick=given.quick,
        fresh=given.fresh,
        strict=given.strict,
        seed=given.seed,
        hashing=given.hashing,
    )
    progress = Progress()
    # As Ctrl-C does: daemons that a question started must not outlive it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    progress.line(f"stores are kept in {work}; the report goes to {out}")
    try:
        report = runner.run(options, progress, command)
    except KeyboardInterrupt:
        progress.line("interrupted; the same command goes on where it stopped")
        raise
    text = tables.markdown(report)
    write(out / "report.md", text)
    _draw(report, out, progress)
    if given.write_docs is not None:
        from memxd.bench.docs import write_docs

        write_docs(report, given.write_docs)
    print(json.dumps(report.to_json(), ensure_ascii=False) if given.json else "\n".join(tables.short(report)))
    if report.run["failed"]:
        return FAILED
    return MISSED if report.missed else 0


def _draw(report: object, out: Path, progress: Progress) -> None:
    from memxd.bench.report import Report

    assert isinstance(report, Report)
    try:
        from memxd.bench import plots
    except ImportError as error:
        progress.line(f"no plots: {error.name} is not installed; pip install 'memxd[bench]'")
        return
    page = plots.page(report, out)
    progress.line(f"plots: {page}")


def _compare(given: argparse.Namespace) -> int:
    from memxd.bench.report import Report, compare
    from memxd.bench.tables import changes_table

    print("\n".join(changes_table(compare(Report.read(given.old), Report.read(given.new)))))
    return 0


def parse_sizes(text: str) -> tuple[int, ...]:
    """``10k,220349,1m`` -> ascending numbers. Raises InvalidArgumentError."""
    sizes = set()
    for word in filter(None, text.lower().replace("_", "").split(",")):
        factor = {"k": 1_000, "m": 1_000_000}.get(word[-1], 1)
        digits = word[:-1] if factor > 1 else word
        if not digits.isdecimal() or not 100 <= int(digits) * factor <= 10_000_000:
            raise InvalidArgumentError(f"--sizes: {word!r} is no number of records from 100 to 10,000,000")
        sizes.add(int(digits) * factor)
    return tuple(sorted(sizes))


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where stores are kept by default: the user's cache."""
    import platformdirs

    base = environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) / "memxd" if base.startswith("/") else platformdirs.user_cache_path("memxd", appauthor=False)
    return folder / "bench"

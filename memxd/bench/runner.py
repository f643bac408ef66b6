"""A run: asks every question, keeps each answer as it comes, writes the report.

Owns the order, the resuming of an interrupted run (a part with the same fingerprint is not measured again; a run that
was finished begins anew) and what becomes of a question that cannot be asked. Called by ``main``.
"""

from __future__ import annotations

import json
import time
import traceback
from datetime import UTC, datetime

from memxd.bench import machine
from memxd.bench.context import Bench, Options
from memxd.bench.measure import Result
from memxd.bench.progress import Progress
from memxd.bench.registry import QUESTIONS, Question, chosen
from memxd.bench.report import PARTS, REPORT, Part, PartStore, Report, write
from memxd.errors import StartupError

#: Marks an unfinished run.
_RUNNING = "running.json"


def run(options: Options, progress: Progress, command: str = "", every: tuple[Question, ...] = QUESTIONS) -> Report:
    """Ask the questions and write ``report.json`` into ``options.out``.

    What broke is in ``report.run["failed"]``, by question, and is asked again by the next run. Raises StartupError
    under ``strict`` when something that a question needs is not installed.
    """
    questions = chosen(options.only, every)
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = machine.describe(options.work)
    _warn_if_busy(progress)
    with Bench.open(options, progress) as bench:
        about = _about(bench, command)
        parts = PartStore(options.out / PARTS, _fingerprint(bench))
        began_anew = _begin(options, parts, questions)
        failed: dict[str, str] = {}
        for number, question in enumerate(questions, 1):
            known = None if began_anew else parts.find(question.name)
            told = "from the interrupted run" if known else question.title
            progress.line(f"[{number}/{len(questions)}] {question.name}: {told}")
            if known is None:
                _keep(question, bench, parts, failed)
    found = tuple(part for q in every if (part := parts.find(q.name)) is not None)
    report = Report(about | {"failed": failed}, facts, found)
    write(options.out / REPORT, json.dumps(report.to_json(), ensure_ascii=False, indent=1))
    if not failed:
        (options.out / _RUNNING).unlink(missing_ok=True)
    return report


def _keep(question: Question, bench: Bench, parts: PartStore, failed: dict[str, str]) -> None:
    """Ask and save; a question that breaks spoils neither the others nor what was measured before it."""
    try:
        parts.save(_ask(question, bench, strict=bench.options.strict))
    except _NotInstalledError:
        raise
    except Exception as error:  # told in the report and by the exit code; the next run asks this question again
        bench.progress.line("".join(traceback.format_exception(error)).rstrip())
        failed[question.name] = f"{type(error).__name__}: {error}"


class _NotInstalledError(StartupError):
    """Under ``strict``: something that a question needs is not there."""

    reason = "BENCH_INCOMPLETE"


def _begin(options: Options, parts: PartStore, questions: tuple[Question, ...]) -> bool:
    """Mark the run as begun; True when nothing of an earlier one counts."""
    mark = options.out / _RUNNING
    wanted = json.dumps({"fingerprint": parts.fingerprint, "questions": [q.name for q in questions]})
    resumed = mark.is_file() and mark.read_text(encoding="utf-8") == wanted and not options.fresh
    if not resumed:
        parts.forget([q.name for q in questions])
        write(mark, wanted)
    return not resumed


def _ask(question: Question, bench: Bench, *, strict: bool) -> Part:
    began, load = time.monotonic(), machine.load()
    try:
        result = question.load()(bench)
    except ImportError as error:
        if strict:
            raise _NotInstalledError(f"{question.name}: {missing(error)}") from error
        result = Result(skipped=(f"not asked: {missing(error)}",))
    for text in result.skipped:
        bench.progress.line(f"  skipped: {text}")
        if strict:
            raise _NotInstalledError(f"{question.name}: {text}")
    seconds = time.monotonic() - began
    bench.progress.line(f"  {len(result.measurements)} figures in {seconds:.1f} s")
    return Part(question.name, question.title, result, seconds, machine.revision(), (load, machine.load()))


def missing(error: ImportError) -> str:
    """What is not installed, and what installs it."""
    return f"{error.name or error} is not installed; pip install 'memxd[bench]'"


def _about(bench: Bench, command: str) -> dict[str, object]:
    options = bench.options
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "quick": options.quick,
        "seed": options.seed,
        "sizes": list(bench.sizes),
        "texts": bench.source.label,
        "vectors": f"generated, 48 latent dimensions, topics and sub-topics, seed {options.seed}",
        "embedder": bench.embedder.info.id,
        "kernels": bench.kernels.name,
    }


def _fingerprint(bench: Bench) -> str:
    """What must be equal for two parts to stand in one report."""
    options = bench.options
    return f"{bench.recipe(0).text} sizes {bench.sizes} quick {options.quick}"


def _warn_if_busy(progress: Progress) -> None:
    load, cores = machine.load(), machine.cores()
    if load > cores:
        progress.line(f"this machine is busy (load {load:.1f} on {cores} cores): times say little, ratios more")

"""A run keeps what it has, goes on after an interruption, and says what it left out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memxd.bench import docs, machine, tables
from memxd.bench.context import Bench, Options
from memxd.bench.main import cache_folder, main, parse_sizes
from memxd.bench.measure import Budget, Measurement, Result
from memxd.bench.progress import Progress
from memxd.bench.registry import Question
from memxd.bench.report import Report, compare
from memxd.bench.runner import run
from memxd.errors import InvalidArgumentError, StartupError

Answer = Callable[[Bench], Result]


class Own(Question):
    """A question of this test."""

    def __init__(self, name: str, answer: Answer) -> None:
        super().__init__(name, name.title())
        object.__setattr__(self, "_answer", answer)

    def load(self) -> Answer:
        return self._answer  # type: ignore[attr-defined, no-any-return]


def told(name: str, value: float = 2.0) -> Result:
    row = Measurement.one(name, "a | b", 1_000, "memxd", value, "ms")
    budgets = (Budget(name, f"{name} in time", 1_000, value, 3.0, "ms", peer="peer", peer_figure=4.0),)
    return Result((row,), budgets, (f"note of {name}",), curves={"clients": {"memxd": [[1, 10.0]]}})


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(tmp_path / "work", tmp_path / "out", sizes=(1_000,), hashing=True)


def ask(options: Options, *questions: Question) -> tuple[Report, str]:
    stream = io.StringIO()
    report = run(options, Progress(stream), "memx bench speed", questions)
    return report, stream.getvalue()


def test_a_report_is_read_back_as_it_was_written(options: Options) -> None:
    report, _ = ask(options, Own("one", lambda _: told("one")))
    again = Report.read(options.out)
    assert again == report
    assert again.schema == json.loads((options.out / "report.json").read_text())["schema"] == 1
    assert {"cpu", "cores", "memory_gb", "disk", "kernel", "python", "libraries", "load_at_start"} <= set(again.machine)
    assert (again.run["seed"], again.run["sizes"]) == (7, [1_000])


def test_an_interrupted_run_goes_on_where_it_stopped(options: Options) -> None:
    asked: list[str] = []

    def first(_: Bench) -> Result:
        asked.append("first")
        return told("first")

    def interrupted(_: Bench) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(options, Own("first", first), Own("second", interrupted))
    report, output = ask(options, Own("first", first), Own("second", lambda _: told("second")))
    assert asked == ["first"]
    assert "first: from the interrupted run" in output
    assert [part.question for part in report.parts] == ["first", "second"]
    ask(options, Own("first", first), Own("second", lambda _: told("second")))
    assert asked == ["first", "first"]  # a finished run begins anew


def test_one_question_asked_again_replaces_its_part_of_the_report(options: Options) -> None:
    values = iter((1.0, 2.0))
    questions = (Own("one", lambda _: told("one", next(values))), Own("two", lambda _: told("two")))
    ask(options, *questions)
    only = Options(options.work, options.out, sizes=(1_000,), hashing=True, only=("one",))
    report, _ = ask(only, *questions)
    assert [(m.question, m.p50) for m in report.measurements] == [("one", 2.0), ("two", 2.0)]


def test_parts_of_other_sizes_do_not_get_into_a_report(options: Options) -> None:
    ask(options, Own("one", lambda _: told("one")), Own("two", lambda _: told("two")))
    other = Options(options.work, options.out, sizes=(2_000,), hashing=True, only=("one",))
    report, _ = ask(other, Own("one", lambda _: told("one")), Own("two", lambda _: told("two")))
    assert [part.question for part in report.parts] == ["one"]


def test_a_library_that_is_missing_is_told_and_an_error_when_strict(options: Options) -> None:
    def lacking(_: Bench) -> Result:
        raise ModuleNotFoundError("no", name="tantivy")

    report, output = ask(options, Own("one", lacking))
    assert "tantivy is not installed; pip install 'memxd[bench]'" in output
    assert report.parts[0].result.skipped
    strict = Options(options.work, options.out, sizes=(1_000,), hashing=True, strict=True)
    with pytest.raises(StartupError, match="tantivy"):
        ask(strict, Own("one", lacking))


def test_a_question_that_breaks_spoils_no_other_and_is_asked_again(options: Options) -> None:
    asked: list[str] = []

    def fine(_: Bench) -> Result:
        asked.append("fine")
        return told("fine")

    def broken(_: Bench) -> Result:
        raise ValueError("no such thing")

    report, output = ask(options, Own("broken", broken), Own("fine", fine))
    assert report.run["failed"] == {"broken": "ValueError: no such thing"}
    assert "Traceback" in output
    assert [part.question for part in report.parts] == ["fine"]
    assert "failed: broken: ValueError: no such thing" in tables.short(report)
    report, _ = ask(options, Own("broken", lambda _: told("broken")), Own("fine", fine))
    assert not report.run["failed"]
    assert [part.question for part in report.parts] == ["broken", "fine"]
    assert asked == ["fine"]


def test_an_unknown_question_is_refused(options: Options) -> None:
    other = Options(options.work, options.out, sizes=(1_000,), hashing=True, only=("none",))
    with pytest.raises(InvalidArgumentError, match="no such question: none"):
        ask(other, Own("one", lambda _: told("one")))


def test_the_markdown_tells_machine_budgets_and_figures(options: Options) -> None:
    report, _ = ask(options, Own("one", lambda _: told("one")), Own("late", lambda _: told("late", 5.0)))
    text = tables.markdown(report)
    assert "| one in time | 1,000 | 2 ms | at most 3 ms | peer | 4 ms | 2x | met |" in text
    assert "**missed**" in text
    assert "a / b" in text  # a bar would end the cell
    assert report.machine["cpu"] in text
    assert [budget.name for budget in report.missed] == ["late in time"]
    assert tables.short(report)[-1] == "1 of 2 judged budgets met"


def test_two_reports_are_compared_by_their_medians(options: Options, tmp_path: Path) -> None:
    old, _ = ask(options, Own("one", lambda _: told("one", 2.0)))
    new, _ = ask(
        Options(options.work, tmp_path / "new", sizes=(1_000,), hashing=True), Own("one", lambda _: told("one", 1.0))
    )
    (change,) = compare(old, new)
    assert (change.old, change.new, change.ratio) == (2.0, 1.0, 0.5)
    assert main(["compare", str(options.out), str(tmp_path / "new")], {}) == 0
    assert main(["compare", str(options.out), str(tmp_path / "none")], {}) == 2


def test_figures_are_put_between_the_markers_of_the_page(options: Options, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report, _ = ask(options, Own("one", lambda _: told("one")))
    page = tmp_path / "PERFORMANCE.md"
    page.write_text(f"before\n{docs.BEGIN}\nold\n{docs.END}\nafter\n")
    for _ in range(2):  # a second time changes nothing
        docs.write_docs(report, tmp_path)
        text = page.read_text()
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text
        assert "one in time" in text
        assert "performance/one-clients.svg" in text
    assert [path.name for path in (tmp_path / "performance").iterdir()] == ["one-clients.svg"]
    page.write_text("no markers")
    with pytest.raises(InvalidArgumentError, match="markers"):
        docs.write_docs(report, tmp_path)


def test_sizes_are_numbers_of_records() -> None:
    assert parse_sizes("1m,10k,220349") == (10_000, 220_349, 1_000_000)
    assert parse_sizes("") == ()
    for wrong in ("abc", "5", "1.5k", "-1k", "99m", "k"):
        with pytest.raises(InvalidArgumentError, match="--sizes"):
            parse_sizes(wrong)


def test_stores_are_kept_in_the_users_cache(tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "memxd" / "bench"
    assert cache_folder({}).parts[-2:] == ("memxd", "bench")


def test_a_piped_run_tells_its_progress_in_lines() -> None:
    stream = io.StringIO()
    with Progress(stream).work("building", 10) as step:
        step(3)
        step(10)
    assert stream.getvalue() == "  building: 10 of 10 (0 s)\n"
    with Progress(stream, quiet=True).work("building", 10) as step:
        step(10)
    assert stream.getvalue().count("\n") == 1


def test_the_machine_is_described() -> None:
    assert machine.resident_mb() > 10
    assert machine.disk_kind(Path("/no/such/folder")) == "unknown"
    assert machine.cores() >= 1


def test_the_command_line_hands_everything_over(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    from memxd.cli.app import run_memx

    ask(options, Own("one", lambda _: told("one")))
    assert run_memx(["bench", "compare", str(options.out), str(options.out)]) == 0
    assert "| one | a / b | 1,000 | memxd | 2 ms | 2 ms | 1.00 |" in capsys.readouterr().out
    assert run_memx(["bench", "speed", "--sizes", "many"]) == 2
    assert "memx bench: --sizes: 'many'" in capsys.readouterr().err

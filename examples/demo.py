"""memxd in two minutes: stores the example memories, asks about them, and shows what comes back and why.

    python examples/demo.py [--socket PATH]

Without --socket it starts a daemon of its own in a temporary folder and stops it at the end. It is an ordinary client
of the socket: everything here can be done by any program in any language. Checks what it shows, and exits with 1 when
something is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from memxd.client import Client, Item
from memxd.errors import MemoryNotFoundError, MemxdError
from memxd.model import Hit, SearchAnswer

HERE = Path(__file__).parent
START_SECONDS = 120.0
#: Columns that all of an explanation needs; what is piped gets as many.
WIDE = 110
#: Questions of questions.jsonl to show; the expected memory must be among the first three.
SHOWN = {
    "atlas": ("q-01", "q-02", "q-10", "q-11", "q-20", "q-22", "q-26"),
    "forge": ("q-33", "q-35", "q-38", "q-42", "q-49", "q-52", "q-57"),
}
UNKNOWN = {"atlas": "q-60", "forge": "q-68"}


class Demo:
    """The walk through memxd; counts what was not as it should be."""

    def __init__(self, client: Client, console: Console) -> None:
        self.client = client
        self.console = console
        self.checks = 0
        self.failures: list[str] = []
        self.ids: dict[str, str] = {}
        self.questions = {q["id"]: q for q in read("questions.jsonl")}
        self.searches: list[float] = []
        self.views = {
            "atlas": client.scope(agent_id="atlas", user_id="zoe"),
            "forge": client.scope(agent_id="forge", user_id="tidewater"),
        }

    def run(self) -> None:
        """Every part in turn."""
        self.introduce()
        self.store()
        for agent in SHOWN:
            self.ask(agent)
        self.nothing_known()
        self.update()
        self.scopes()
        self.timings()

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def title(self, text: str) -> None:
        self.say(f"\n[bold]{escape(text)}[/bold]")

    def check(self, holds: bool, text: str) -> None:
        """One line that says whether it is as it should be."""
        self.checks += 1
        if not holds:
            self.failures.append(text)
        self.say(f"  {'[green]ok[/green]' if holds else '[red]NOT SO[/red]'}  {escape(text)}")

    def search(self, agent: str, query: str, **options: Any) -> SearchAnswer:
        """A search as any program would do it, with its time taken."""
        start = time.perf_counter()
        answer = self.views[agent].search(query, **options)
        self.searches.append(time.perf_counter() - start)
        return answer

    def introduce(self) -> None:
        status = self.client.status()
        model = status.engine.model
        self.title(f"memxd {status.version}")
        self.say(f"  socket   {escape(status.socket_path)}")
        self.say(f"  model    {escape(model.id)}, {model.dimension} dimensions, {model.backend}")
        self.say(f"  kernels  {'compiled' if status.engine.kernels == 'c' else 'Python (slow: no compiler?)'}")

    def store(self) -> None:
        """Stream the corpus in; lines that replace others come second, when the others' ids are known."""
        lines = read("memories.jsonl")
        taken = [agent for agent, view in self.views.items() if view.count(include_superseded=True)]
        if taken:
            raise SystemExit(f"the scopes of {' and '.join(taken)} hold memories already; the demo needs them empty")
        self.title(f"Storing {len(lines)} memories of two agents")
        start = time.perf_counter()
        with Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        ) as progress:
            task = progress.add_task("embed, commit, index", total=len(lines))
            for replaces in (False, True):
                batch = [line for line in lines if bool(line.get("supersedes")) is replaces]
                answers = self.client.store_many(self.item(line) for line in batch)
                for line, answer in zip(batch, answers, strict=True):
                    if isinstance(answer, MemxdError):
                        raise answer
                    self.ids[line["metadata"]["key"]] = answer.memory.id
                    progress.advance(task)
        seconds = time.perf_counter() - start
        counts = {agent: view.count() for agent, view in self.views.items()}
        replaced = sum(len(line.get("supersedes", ())) for line in lines)
        self.say(f"  {len(lines)} in {seconds:.1f} s; active now: " + ", ".join(f"{a} {n}" for a, n in counts.items()))
        self.check(
            sum(counts.values()) == len(lines) - replaced,
            f"every memory is there, and the {replaced} that newer ones replaced are no longer active",
        )

    def item(self, line: dict[str, Any]) -> Item:
        """A line of memories.jsonl as the client wants it: times parsed, keys replaced by ids."""
        given = dict(line)
        for name in ("event_at", "valid_until"):
            if name in given:
                given[name] = datetime.fromisoformat(given[name])
        given["supersedes"] = [self.ids[key] for key in given.get("supersedes", ())]
        return Item(**given)

    def ask(self, agent: str) -> None:
        """Plain questions, and why each answer stands where it stands."""
        self.title(f"Asking {agent}")
        self.say("  meaning, words: place by vector (cosine) and by keywords (BM25)")
        self.say("  sem. + rec. + freq. + imp. = score: how well it answers, how recent, how often used, how important")
        for question in map(self.questions.__getitem__, SHOWN[agent]):
            answer = self.search(agent, question["query"], k=3, explain=True)
            self.say(f"\n  [bold cyan]{escape(question['query'])}[/bold cyan]")
            self.console.print(self.table(answer.hits))
            found = [f"{key(hit)} in place {hit.rank}" for hit in answer.hits if key(hit) in question["expect"]]
            self.check(bool(found), "the right memory: " + ", ".join(found or question["expect"]))

    def table(self, hits: Sequence[Hit]) -> Table:
        """The hits with their explanations; a narrow terminal does without the factors."""
        names = ("relevance", "meaning", "words", "sem.", "rec.", "freq.", "imp.", "score")
        shown = len(names) if self.console.width >= WIDE else 3
        table = Table(box=box.SIMPLE_HEAD if self.console.is_terminal else None, padding=(0, 1), header_style="bold")
        table.add_column("#", justify="right")
        table.add_column("memory", ratio=1, overflow="fold")
        for name in names[:shown]:
            table.add_column(name, justify="right", no_wrap=True)
        for hit in hits:
            why = hit.explanation
            if why is None:
                raise ValueError("an explained search answers explanations")
            cells = [
                f"{hit.relevance:.2f}",
                place(why.vector_rank, why.cosine, 3),
                place(why.keyword_rank, why.keyword_score, 1),
                *(f"{f.contribution:.3f}" for f in (why.semantic, why.recency, why.frequency, why.importance)),
                f"{why.raw_score:.3f}",
            ]
            table.add_row(str(hit.rank), escape(shorten(hit.memory.content)), *cells[:shown])
        return table

    def nothing_known(self) -> None:
        """Questions that neither agent can know the answer to."""
        self.title("Nothing known")
        for agent, name in UNKNOWN.items():
            query = self.questions[name]["query"]
            answer = self.search(agent, query)
            reason = answer.reject_reason.name if answer.reject_reason else "none"
            self.say(f"\n  [bold cyan]{escape(query)}[/bold cyan]  ({agent})")
            why = f"{reason}: the best of {answer.candidates} candidates has relevance {answer.best_relevance:.2f}"
            self.check(answer.rejected and not answer.hits, f"nothing known. {why}")

    def update(self) -> None:
        """A changed text is found by its new words and meaning at once, and no longer by the old."""
        self.title("An update takes effect at once")
        atlas = self.views["atlas"]
        old, new = (
            "Zoë's locker at the climbing hall has number 4471.",
            "Zoë's locker at the climbing hall has number 8093.",
        )
        stored = atlas.store(old, tags=["hobby"]).memory
        self.say(f"  stored   {old}")
        before = self.search("atlas", "4471", mode="keyword", record_retrieval=False)
        start = time.perf_counter()
        atlas.update(stored.id, content=new)
        self.say(f"  updated  {new}  ({(time.perf_counter() - start) * 1e3:.1f} ms)")
        words_old = self.search("atlas", "4471", mode="keyword", record_retrieval=False)
        words_new = self.search("atlas", "8093", mode="keyword", record_retrieval=False)
        meaning = self.search("atlas", "Which locker does Zoë use for climbing?", mode="vector", k=1)
        self.check(texts(before) == [old], "before: the old number finds it")
        self.check(old not in texts(words_old), "after: the old number finds nothing")
        self.check(texts(words_new) == [new], "after: the new number finds it")
        self.check(texts(meaning) == [new], "after: by meaning only the new text comes back")
        atlas.delete(stored.id)
        self.check(new not in texts(self.search("atlas", "8093", mode="keyword")), "deleted: gone")
        then = self.search("atlas", "Where do Zoë and Joris live?", k=1, as_of=datetime(2025, 6, 1, tzinfo=UTC))
        self.check([key(h) for h in then.hits] == ["atlas-009"], "as of June 2025 the old address is the answer")

    def scopes(self) -> None:
        """The same question, asked on both sides of the wall."""
        self.title("Two scopes that do not see each other")
        query = "How is the pea soup made?"
        found, other = self.search("atlas", query, k=1), self.search("forge", query)
        self.say(f"  [bold cyan]{escape(query)}[/bold cyan]")
        self.check([key(h) for h in found.hits] == ["atlas-081"], f"atlas knows: {shorten(' '.join(texts(found)), 60)}")
        self.check(other.rejected, "forge knows nothing of it")
        try:
            self.views["forge"].get(self.ids["atlas-081"])
            hidden = False
        except MemoryNotFoundError:
            hidden = True
        self.check(hidden, "and even by its id forge is told that no such memory exists")

    def timings(self) -> None:
        """How long the searches above took, and how long they take when the question was asked before."""
        self.title("Timings, as this client saw them")
        again = []
        for query in [q["query"] for q in self.questions.values()] * 2:
            start = time.perf_counter()
            self.views["atlas"].search(query, record_retrieval=False)
            again.append(time.perf_counter() - start)
        again = again[len(again) // 2 :]
        for name, values in (("asked above, each embedded", self.searches), ("asked before", again)):
            p50, p95 = statistics.median(values) * 1e3, statistics.quantiles(values, n=20)[-1] * 1e3
            self.say(f"  {len(values)} questions {name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms")


def read(name: str) -> list[dict[str, Any]]:
    """The lines of an example file."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def key(hit: Hit) -> str:
    """The example's own name of a memory."""
    return str(hit.memory.metadata.get("key", "?"))


def texts(answer: SearchAnswer) -> list[str]:
    return [hit.memory.content for hit in answer.hits]


def place(rank: int | None, score: float | None, digits: int) -> str:
    """Such as "1 (.873)": rank and score in one leg; "-" where that leg did not find it."""
    shown = "" if score is None else f" ({score:.{digits}f})"
    return f"{rank}{shown}" if rank else f"-{shown}"


def shorten(text: str, length: int = 110) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


@contextmanager
def own_daemon(console: Console) -> Iterator[Path]:
    """A daemon in a temporary folder: yields its socket when it serves, stops it afterwards."""
    with tempfile.TemporaryDirectory(prefix="memxd-demo-") as folder:
        socket, log = Path(folder, "memxd.sock"), Path(folder, "log")
        command = [sys.executable, "-m", "memxd", "serve", "--socket", str(socket), "--data-dir", f"{folder}/data"]
        with log.open("wb") as stderr:
            daemon = subprocess.Popen(command, stderr=stderr)
        try:
            start = time.perf_counter()
            if not serves(socket, daemon):
                raise SystemExit(f"the daemon does not serve:\n{log.read_text(errors='replace')[-4_000:]}")
            console.print(f"daemon started in {time.perf_counter() - start:.1f} s; the first start unpacks the model")
            yield socket
        finally:
            daemon.terminate()
            try:
                code = daemon.wait(timeout=60)
            except subprocess.TimeoutExpired:
                daemon.kill()
                code = daemon.wait()
        if code != 0:
            raise SystemExit(f"the daemon ended with {code}:\n{log.read_text(errors='replace')[-4_000:]}")
        console.print("daemon stopped cleanly", highlight=False)


def serves(socket: Path, daemon: subprocess.Popen[bytes]) -> bool:
    """Wait until it does; False when it ended or took too long."""
    deadline = time.monotonic() + START_SECONDS
    with Client(socket) as client:
        while daemon.poll() is None and time.monotonic() < deadline:
            try:
                client.wait_ready(0.5)
                return True
            except MemxdError:  # not yet
                continue
    return False


def demonstrate(socket: str | Path, console: Console) -> int:
    """The demo against a daemon; the exit code."""
    with Client(socket) as client:
        demo = Demo(client, console)
        demo.run()
    console.print(f"\n{demo.checks} checks, {len(demo.failures)} failed", highlight=False)
    for failure in demo.failures:
        console.print(f"  failed: {failure}", highlight=False, markup=False)
    return 1 if demo.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="memxd in two minutes")
    parser.add_argument("--socket", help="use the daemon on this socket instead of starting one")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        if arguments.socket:
            return demonstrate(arguments.socket, console)
        with own_daemon(console) as socket:
            return demonstrate(socket, console)
    except MemxdError as error:
        raise SystemExit(f"{error.reason}: {error}") from None


if __name__ == "__main__":
    sys.exit(main())

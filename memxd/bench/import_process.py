"""One importing client: ``python -m memxd.bench.import_process``, told by one JSON line on standard input.

Owns a single StoreMany stream through memxd's own client: prepares all items first (texts from a file, vectors from
another), says "ready", waits for a line, pours, and prints how many were acknowledged in how many seconds. A process of
its own, so that what it costs to make messages slows neither the daemon's threads nor the caller who measures searches
beside it. Started by ``importing`` only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from memxd.bench.served import Served, clean_environ
from memxd.client import NO_RETRY, Client, Item
from memxd.errors import MemxdError


@dataclass(frozen=True, slots=True)
class Job:
    """``texts``: one a line; ``vectors``: a float32 .npy file with as many rows, "" = the daemon embeds."""

    socket: str
    agent: str
    user: str
    texts: str
    vectors: str
    model: str


def pour(job: Job) -> dict[str, float]:
    """Import everything; seconds from the first item to the last answer, and the longest gap between two answers.

    Raises the first refusal.
    """
    texts = Path(job.texts).read_text(encoding="utf-8").splitlines()
    rows = np.load(job.vectors) if job.vectors else [()] * len(texts)
    model = job.model if job.vectors else ""
    items = [Item(t, vector=v, model_id=model, allow_duplicate=True) for t, v in zip(texts, rows, strict=True)]
    done, gap = 0, 0.0
    with Client(job.socket, agent_id=job.agent, user_id=job.user, retry=NO_RETRY) as client:
        client.wait_ready()
        print("ready", flush=True)
        sys.stdin.readline()
        began = last = time.perf_counter()
        for answer in client.store_many(items):
            if isinstance(answer, MemxdError):
                raise answer
            now = time.perf_counter()
            done, gap, last = done + 1, max(gap, now - last), now
        return {"count": done, "seconds": last - began, "gap": gap}


class Importing:
    """An import that runs beside. ``result`` waits for its end."""

    def __init__(self, process: subprocess.Popen[str], patience: float) -> None:
        self._process, self._patience = process, patience

    @property
    def running(self) -> bool:
        """Whether it is not over yet."""
        return self._process.poll() is None

    def result(self) -> dict[str, float]:
        """``count``, ``seconds``, ``gap``. Raises RuntimeError when it failed."""
        out, _ = self._process.communicate(timeout=self._patience)
        if self._process.returncode != 0:
            raise RuntimeError(f"the importing process ended with {self._process.returncode}")
        answer: dict[str, float] = json.loads(out)
        return answer


@contextmanager
def importing(
    served: Served, model: str, texts: Sequence[str], vectors: NDArray[np.float32] | None = None
) -> Iterator[Importing]:
    """The import, begun; killed at the block's end if it still runs. ``vectors`` float32[len(texts), d]."""
    with TemporaryDirectory(prefix="memxd-import-") as name:
        file, matrix = Path(name) / "texts", Path(name) / "vectors.npy"
        file.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
        if vectors is not None:
            np.save(matrix, vectors)
        job = Job(str(served.socket), *served.whose, str(file), "" if vectors is None else str(matrix), model)
        command = [sys.executable, "-m", "memxd.bench.import_process"]
        with subprocess.Popen(
            command, env=clean_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(asdict(job)) + "\n")
                process.stdin.flush()
                if process.stdout.readline().strip() != "ready":
                    raise RuntimeError("the importing process did not start")
                process.stdin.write("go\n")
                process.stdin.flush()
                yield Importing(process, 600.0 + len(texts) / 50)
            finally:
                process.kill()


def main() -> None:
    """Read the job, do it, print the result."""
    job = Job(**json.loads(sys.stdin.readline()))
    print(json.dumps(pour(job)), flush=True)


if __name__ == "__main__":
    main()

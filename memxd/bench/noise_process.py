"""A caller who keeps the daemon busy: ``python -m memxd.bench.noise_process``, told by one JSON line, until killed.

Owns the few kinds of long work that searches must not wait for: listing everything in large pages, searches with many
explained hits, rebuilding an index over and over. A process of its own, so that the measuring caller's interpreter is
not the one that stalls. Started by ``noise`` only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from memxd.bench.client_process import SHOW_ALL
from memxd.bench.served import Served, clean_environ
from memxd.client import NO_RETRY, Client

#: What ``noise`` may be asked for, and what the report calls it.
KINDS = {
    "list": "beside a List of everything, pages of 500",
    "explain": "beside searches with 200 explained hits",
    "rebuild": "beside rebuilds of the keyword index",
}


def make(kind: str, client: Client) -> int:
    """One round of it; answers something that grows with the work done."""
    if kind == "list":
        return sum(1 for _ in client.iter_list(page_size=500))
    if kind == "rebuild":
        return sum(1 for _ in client.rebuild("keyword"))
    return len(client.search("what is it about", k=200, explain=True, ranking=SHOW_ALL, record_retrieval=False).hits)


@contextmanager
def noise(kind: str, served: Served) -> Iterator[None]:
    """Noise of this kind beside the block. Raises RuntimeError when it broke off by itself."""
    told = json.dumps({"kind": kind, "socket": str(served.socket), "scope": served.whose})
    command = [sys.executable, "-m", "memxd.bench.noise_process"]
    with subprocess.Popen(
        command, env=clean_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(told + "\n")
            process.stdin.flush()
            if process.stdout.readline().strip() != "begun":
                raise RuntimeError(f"the noise {kind!r} did not begin")
            time.sleep(0.1)
            yield
            if process.poll() is not None:
                raise RuntimeError(f"the noise {kind!r} broke off with {process.returncode}")
        finally:
            process.kill()


def main() -> None:
    """Make noise until killed."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    agent, user = job["scope"]
    with Client(job["socket"], agent_id=agent, user_id=user, timeout=600.0, retry=NO_RETRY) as client:
        client.wait_ready()
        print("begun", flush=True)
        while True:
            make(job["kind"], client)


def _end_with_parent() -> None:
    """Its end of our standard input closes when it is gone, however it ends."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()

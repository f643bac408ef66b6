"""memx link..., status, rebuild, version, completion; and how every failure is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from scripted import refuse

from memxd import __version__, model
from memxd.cli import words as cli_words
from memxd.v1 import admin_service_pb2, memory_pb2, memory_service_pb2

pb = memory_service_pb2
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LINK = memory_pb2.Link(id="l", source_id="a", target_id="b", type=5, strength=0.75, created_at=Timestamp(seconds=1))
STATUS = admin_service_pb2.StatusResponse(
    version="9.9", pid=42, revision=12, memories=3, links=1, kernels="c", socket_path="/run/x", data_dir="/data",
    indexes=[
        admin_service_pb2.IndexStatus(
            kind=1, state=1, watermark=12, durable_watermark=11, entries=1234, size_bytes=2048
        ),
        admin_service_pb2.IndexStatus(kind=2, state=3, message="broken"),
    ],
    model=admin_service_pb2.ModelStatus(id="e5", dimension=384, backend="onnx", variant="i8", available=True),
    scopes=[admin_service_pb2.ScopeCount(scope=memory_pb2.Scope(agent_id="a", user_id="u"), total=3, active=2)],
    scope_count=1, started_at=Timestamp(seconds=1_700_000_000),
)  # fmt: skip


def test_link_verbs(server: Any, memx: Callable[..., Any]) -> None:
    server.on("CreateLink", lambda r, c: pb.CreateLinkResponse(link=LINK))
    server.on("DeleteLink", lambda r, c: pb.DeleteLinkResponse(revision=3))
    server.on("ListLinks", lambda r, c: pb.ListLinksResponse(links=[LINK], total_count=1))
    reached = pb.TraversedMemory(
        memory=memory_pb2.Memory(id="b", content="old", type=2, state=2), depth=1, path_strength=0.75, link_ids=["l"]
    )
    server.on("Traverse", lambda r, c: pb.TraverseResponse(memories=[reached], links=[LINK], truncated=True))
    assert memx("link", "a", "supersedes", "b", "--strength", "0.75").out == "l\n"
    assert memx("unlink", "l").out == "removed\n"
    assert memx("links", "a").out.splitlines()[1].split("\t") == ["l", "supersedes", "0.75", "->", "b"]
    assert memx("links", "b").out.splitlines()[1].split("\t") == ["l", "supersedes", "0.75", "<-", "a"]
    done = memx("related", "a", "--depth", "1", "--type", "supersedes", "--direction", "outgoing")
    assert done.out.splitlines()[1].split("\t") == ["1", "0.75", "semantic", "b", "old"]
    assert "raise --nodes" in done.err
    (walk,) = server.requests("Traverse")
    assert (walk.max_depth, list(walk.types), walk.direction) == (1, [5], 1)
    assert json.loads(memx("related", "a", "--json").out)["memories"][0]["link_ids"] == ["l"]


def test_status_shows_indexes_model_and_scopes(
    server: Any, memx: Callable[..., Any], memx_tty: Callable[..., Any]
) -> None:
    server.on("Status", lambda r, c: STATUS)
    done = memx("status")
    assert "vector\tready\t12\t11\t1,234\t0\t0\t2.0 KiB\t" in done.out
    assert "keyword\tfailed" in done.out
    assert "e5 (onnx, i8, 384 dimensions, on this machine)" in done.out
    assert "a\tu\t2\t3" in done.out
    assert "\x1b[" in memx_tty("status", width=120).out
    shown = json.loads(memx("status", "--json").out)
    assert shown["engine"]["scopes"] == [{"scope": {"agent_id": "a", "user_id": "u"}, "total": 3, "active": 2}]
    assert shown["started_at"] == "2023-11-14T22:13:20Z"


def test_status_cuts_no_title_on_a_narrow_terminal(server: Any, memx_tty: Callable[..., Any]) -> None:
    server.on("Status", lambda r, c: STATUS)
    for width, titles in (
        (60, ["index", "state", "revision", "entries", "size", "message"]),
        (80, ["index", "state", "revision", "on disk", "entries", "size", "message"]),
    ):
        shown = ANSI.sub("", memx_tty("status", width=width).out)
        assert re.split(
            r" {1,}", next(line for line in shown.splitlines() if line.strip().startswith("index")).strip()
        ) == (" ".join(titles).split())
        assert "broken" in shown


def test_status_leaves_out_an_empty_message_and_dims_names_only(server: Any, memx_tty: Callable[..., Any]) -> None:
    well = admin_service_pb2.StatusResponse()
    well.CopyFrom(STATUS)
    well.indexes[1].message = ""
    server.on("Status", lambda r, c: well)
    shown = memx_tty("status", width=100).out
    assert "message" not in shown
    line = next(line for line in shown.splitlines() if "socket" in line)
    assert re.search(r"\x1b\[2msocket *\x1b\[0m/run/x", line)


def test_json_maps_are_in_order(server: Any, memx: Callable[..., Any]) -> None:
    told = admin_service_pb2.StatusResponse()
    told.CopyFrom(STATUS)
    for name in ("usearch", "grpcio", "numpy", "python", "protobuf", "whoosh3"):
        told.libraries[name] = "1"
    server.on("Status", lambda r, c: told)
    libraries = json.loads(memx("status", "--json").out)["libraries"]
    assert list(libraries) == sorted(told.libraries)


def test_a_link_that_exists_is_named(server: Any, memx: Callable[..., Any]) -> None:
    server.on(
        "CreateLink",
        lambda r, c: refuse(
            c, grpc.StatusCode.ALREADY_EXISTS, "LINK_ALREADY_EXISTS", "linked already", metadata={"id": "the-link"}
        ),
    )
    done = memx("link", "a", "related", "b")
    assert (done.code, done.err) == (5, "memx: linked already (as the-link)\n")


def test_a_model_that_is_not_there_and_a_wrong_setting_are_not_a_missing_daemon(memx: Callable[..., Any]) -> None:
    assert memx("models", "use", "no-such-model").code == 5
    assert memx("models", "add", "/nowhere").code == 5
    assert memx("models", "list", env={"MEMXD_WORKERS": "none"}).code == 2


def test_models_alone_lists_and_tells_of_a_change_under_way(server: Any, memx: Callable[..., Any]) -> None:
    told = admin_service_pb2.StatusResponse()
    told.CopyFrom(STATUS)
    change = told.model_change
    change.from_id, change.to_id, change.to_dimension = "old-384", "new-768", 768
    change.phase, change.done, change.total, change.former_serves = 1, 250, 1_000, True
    server.on("Status", lambda r, c: told)
    line = "to new-768: 250 of 1,000 (25 %); the former model answers meanwhile"
    shown = memx("models")
    assert shown.code == 0
    assert f"every memory is embedded again, {line}" in shown.out
    assert line in memx("status").out
    plain = json.loads(memx("models", "--json").out)
    assert plain["change"]["done"] == 250
    assert [model["in_use"] for model in plain["models"]] == [True]
    told.model_change.message = "the endpoint is down"
    assert "held up: the endpoint is down" in memx("models", "list").out


def test_help_is_in_whole_sentences_and_without_types_of_python(memx: Callable[..., Any]) -> None:
    shown = memx("--help", env={"COLUMNS": "80"}).out
    assert "..." not in shown.split("Commands:")[1]
    for verb in ("add", "search", "get", "forget", "link"):
        shown = memx(verb, "--help").out
        assert "list[" not in shown
        assert "{" not in shown
    assert "--tag TAG" in memx("add", "--help").out


def test_verbs_without_a_scope_take_no_scope(memx: Callable[..., Any]) -> None:
    for words in (["version"], ["status"], ["models", "list"], ["completion", "bash"]):
        assert "--agent" not in memx(*words, "--help").out
        done = memx(*words, "--agent", "a")
        assert done.code == 2


def test_rebuild_and_flush(server: Any, memx: Callable[..., Any], memx_tty: Callable[..., Any]) -> None:
    def script(_: Any, __: grpc.ServicerContext) -> Iterator[Any]:
        yield admin_service_pb2.RebuildResponse(kind=1, done=1, total=2)
        yield admin_service_pb2.RebuildResponse(kind=1, done=2, total=2, finished=True, watermark=7)

    server.on("Rebuild", script)
    server.on("Flush", lambda r, c: admin_service_pb2.FlushResponse(revision=7))
    assert memx("rebuild", "vector").out == "vector: 2 entries, revision 7\n"
    assert "vector: 2 entries, revision 7" in memx_tty("rebuild").out
    assert json.loads(memx("rebuild", "--json").out)["indexes"][0]["watermark"] == 7
    assert "revision 7" in memx("flush").out


def test_version_works_without_a_daemon_and_tells_the_daemons(memx: Callable[..., Any]) -> None:
    done = memx("version")
    assert (done.code, done.out) == (0, f"memxd {__version__}\ndaemon: none answers\n")
    assert json.loads(memx("version", "--json").out) == {"version": __version__, "daemon": None}


def test_version_tells_the_daemons(server: Any, memx: Callable[..., Any]) -> None:
    server.on("Status", lambda r, c: STATUS)
    assert memx("version").out == f"memxd {__version__}\ndaemon 9.9 (pid 42)\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(memx: Callable[..., Any], shell: str) -> None:
    done = memx("completion", shell)
    assert done.code == 0
    assert "_MEMX_COMPLETE" in done.out


def test_bash_completes_verbs(environment: dict[str, str]) -> None:
    env = {**environment, "_MEMX_COMPLETE": "complete_bash", "COMP_WORDS": "memx sea", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from memxd.cli import memx; import sys; sys.argv = ['memx']; memx()"],
        capture_output=True, text=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["search"]


def test_no_daemon_exits_4_with_the_next_step(memx: Callable[..., Any], home: Path) -> None:
    done = memx("count")
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert "memxd serve" in done.err


@pytest.mark.parametrize(
    ("code", "reason", "exit_code"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", 2),
        (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED", 2),
        (grpc.StatusCode.NOT_FOUND, "LINK_NOT_FOUND", 3),
        (grpc.StatusCode.ABORTED, "REVISION_MISMATCH", 5),
        (grpc.StatusCode.FAILED_PRECONDITION, "BRAND_NEW", 5),
    ],
)
def test_exit_codes_tell_refusals_apart(
    server: Any, memx: Callable[..., Any], code: grpc.StatusCode, reason: str, exit_code: int
) -> None:
    server.on("Count", lambda r, c: refuse(c, code, reason, "because", violations=[("filter.tags_any[0]", "is blank")]))
    done = memx("count")
    assert done.code == exit_code
    assert done.err.startswith("memx: because")
    assert done.err.endswith("; filter.tags_any[0]: is blank\n")


@pytest.mark.parametrize(
    "words",
    [
        ["serach"],
        ["add", "x", "--type", "dream"],
        ["add", "x", "--event-at", "yesterdayish"],
        ["add", "x", "--meta", "novalue"],
        ["search", "x", "-k", "many"],
        ["get"],
        ["count", "--since", "99999999d"],
        ["add", "x", "--metaa", "a=b"],
    ],
)
def test_wrong_usage_exits_2_in_two_lines(memx: Callable[..., Any], words: list[str]) -> None:
    done = memx(*words)
    assert done.code == 2
    assert done.err.startswith("memx: ")
    assert done.err.count("\n") <= 2
    assert "Traceback" not in done.err


def test_bytes_that_are_no_text_are_refused_by_field(server: Any, memx: Callable[..., Any]) -> None:
    done = memx("add", os.fsdecode(b"caf\xe9"))
    assert done.code == 2
    assert "memory.content" in done.err


def test_a_closed_pipe_is_quiet(server: Any, environment: dict[str, str]) -> None:
    page = [memory_pb2.Memory(id=str(i), content="x" * 1000, type=2, state=1) for i in range(500)]
    server.on("List", lambda r, c: pb.ListResponse(memories=page, next_page_token="more"))
    with subprocess.Popen(
        [sys.executable, "-m", "memxd.cli", "list", "--all", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_ctrl_c_is_quiet(server: Any, environment: dict[str, str]) -> None:
    def hang(_: Any, context: grpc.ServicerContext) -> Any:
        while context.is_active():
            time.sleep(0.01)
        return pb.CountResponse()

    server.on("Count", hang)
    with subprocess.Popen(
        # A test run in the background of a shell hands an ignored SIGINT down, which no program in a terminal has.
        [
            sys.executable,
            "-c",
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from memxd.cli import memx; memx()",
            "count",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        end = time.monotonic() + 30
        while not server.requests("Count") and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_help_names_the_exit_codes_and_every_verb(memx: Callable[..., Any]) -> None:
    done = memx("--help")
    assert done.code == 0
    assert "Exit codes" in done.out
    verbs = re.findall(r"^  ([a-z]+) {2,}", done.out.split("Commands:")[1], re.MULTILINE)
    assert set(verbs) >= {
        "add", "search", "get", "list", "edit", "forget", "count", "link", "unlink", "links", "related", "status",
        "flush", "rebuild", "models", "version", "completion",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (model.MemoryType, cli_words.TypeWord),
        (model.State, cli_words.StateWord),
        (model.LinkType, cli_words.LinkWord),
        (model.Direction, cli_words.DirectionWord),
        (model.Order, cli_words.OrderWord),
        (model.Mode, cli_words.ModeWord),
        (model.Profile, cli_words.ProfileWord),
        (model.Dedup, cli_words.DedupWord),
        (model.IndexKind, cli_words.IndexWord),
    ],
)
def test_flags_take_the_words_of_the_contract(theirs: Any, ours: Any) -> None:
    assert {m.name.lower() for m in theirs} == {str(m.value) for m in ours}


def test_both_console_scripts_run(environment: dict[str, str]) -> None:
    for script in ("memx", "memxd"):
        program = f"import sys; from memxd.cli import {script}; sys.argv = ['{script}', 'version']; {script}()"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60, check=False
        )
        assert done.returncode == 0
        assert __version__ in done.stdout


def test_version_and_help_load_nothing_heavy(environment: dict[str, str]) -> None:
    program = (
        "import sys\nfrom memxd.cli import memx\nsys.argv = ['memx', 'version']\n"
        "try:\n    memx()\nexcept SystemExit:\n    pass\n"
        "heavy = {'grpc', 'numpy', 'onnxruntime', 'usearch', 'whoosh', 'rich', 'google.protobuf', 'httpx',\n"
        "         'memxd.engine', 'memxd.model'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"

"""The composition root: builds every layer in order, serves until told to stop, takes everything down in reverse.

The only module that knows all layers; one ExitStack opens and closes them. Owns signals, exit codes and the order of
starting and draining; no rule of any layer. ``memxd serve`` calls ``run``.

Order: log, signals, socket lock, data lock, server (health says NOT_SERVING), kernels, engine, SERVING; the embedder is
opened beside all that follows the locks. On
SIGTERM or SIGINT: NOT_SERVING, new calls refused, running ones finish (``drain_seconds``, a second signal hurries),
indexes flushed, everything closed, exit 0. A stop that hangs for longer than all of that may take is ended by an alarm.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

from memxd import __version__
from memxd.config import Config, process_environ, silence_grpc, system_time_zone
from memxd.data_dir import log_key, prepare_data_dir
from memxd.descriptors import room_for_connections
from memxd.errors import AlreadyRunningError, DataInUseError, MemxdError, StartupError
from memxd.heap import give_back, limit_arenas
from memxd.libraries import Libraries
from memxd.listening import Listening, open_listening
from memxd.locks import FileLock
from memxd.logs import configure, keep_texts_out
from memxd.notify import Manager
from memxd.reload import Live
from memxd.signals import Signals
from memxd.threads import on_vital_death

if TYPE_CHECKING:
    from memxd._fast import KernelChoice
    from memxd.embed import Embedder, EmbedSettings
    from memxd.embed.settings import Backend
    from memxd.engine.engine import Engine
    from memxd.service.calls import CallLog
    from memxd.service.convert.admin import ProcessFacts
    from memxd.service.gate import Gate
    from memxd.service.server import Server

log = logging.getLogger("memxd.daemon")

#: Exit code of a daemon that could not go on (EX_SOFTWARE): a service manager starts it again.
BROKEN = 70
#: Seconds for cancelled calls to notice, before the engine closes under them.
_CANCEL_SECONDS = 5.0
#: Seconds for closing the engine, many times what it takes; the store is safe at every moment, a hung stop is not.
_CLOSE_SECONDS = 45.0
#: One busy Python thread makes every other wait this long for the interpreter; the default of 5 ms shows in latency.
_SWITCH_SECONDS = 1e-4
#: With many calls at once all of them wait anyway, and each switch costs all of them.
_CROWD_SWITCH_SECONDS = 5e-3
#: Seconds between two looks at memory that nobody uses.
_TIDY_SECONDS = 60.0


def _on_crowd(crowd: bool) -> None:
    """How long a thread keeps the interpreter while others want it."""
    sys.setswitchinterval(_CROWD_SWITCH_SECONDS if crowd else _SWITCH_SECONDS)


def run(config: Config, environ: Mapping[str, str] | None = None, *, reread: Callable[[], Config] | None = None) -> int:
    """Serve until a signal comes; the exit code (0, a StartupError's, or BROKEN when a thread died without which the
    daemon is of no use: nothing acknowledged is lost, and a fresh start is the way out).

    ``reread`` answers SIGHUP with the settings as they are by then; without it they stay. A start that fails says so in
    one line on standard error. Call it on the main thread: it installs signal handlers.
    """
    environ = process_environ() if environ is None else environ
    configure(config.log_level, config.log_format)
    silence_grpc()
    keep_texts_out()
    faulthandler.enable()
    os.umask(0o077)  # whatever any layer creates is the user's alone
    sys.setswitchinterval(_SWITCH_SECONDS)
    limit_arenas()
    gc.disable()  # until all is there: what a start makes stays, and each walk over it would be in vain
    try:
        with ExitStack() as stack:
            signals = stack.enter_context(Signals(_stop_seconds(config)))
            stack.callback(on_vital_death)
            on_vital_death(signals.give_up)
            _serve(config, environ, stack, signals, reread or (lambda: config))
    except MemxdError as error:
        print(f"memxd: {error.message}", file=sys.stderr)
        return error.exit_code if isinstance(error, StartupError) else StartupError.exit_code
    finally:
        gc.enable()
    log.info("stopped")
    return BROKEN if signals.failed else 0


def _stop_seconds(config: Config) -> float:
    """How long a stop may take before it counts as hung."""
    return config.drain_seconds + _CANCEL_SECONDS + _CLOSE_SECONDS


def _serve(
    config: Config, environ: Mapping[str, str], stack: ExitStack, signals: Signals, reread: Callable[[], Config]
) -> None:
    from memxd.service.socket import SocketClaim

    began = time.monotonic()
    manager = Manager(environ)
    manager.status("opening the memories and the model")
    claim = stack.enter_context(SocketClaim(config.socket, environ))
    listening = open_listening(
        config.listen,
        auth=config.auth,
        certificate=config.tls_cert,
        key=config.tls_key,
        client_ca=config.tls_client_ca,
    )
    prepare_data_dir(config.data_dir)
    stack.enter_context(claim_data(config.data_dir))
    embedder = _opening_embedder(config, stack)
    from memxd.service.calls import CallLog

    calls = CallLog(log_key(config.data_dir), config.slow_ms)
    gate, server = _server(config, environ, listening, calls)
    stack.callback(server.close)
    server.start(claim)
    engine = _open_engine(config, stack, embedder)
    gate.open(engine)
    gc.freeze()  # libraries stay: each walk of the garbage collector over them would hold all threads up for 30 ms
    gc.enable()
    server.set_serving(True)
    manager.ready("serving")
    seconds = round(time.monotonic() - began, 2)
    log.info("serving", extra={"fields": {"socket": str(config.socket), "pid": os.getpid(), "seconds": seconds}})
    give_back()  # what opening took and no longer needs
    config = _wait(Live(config, reread), manager, signals, calls)
    manager.stopping("letting running calls finish", _stop_seconds(config))
    _drain(config, gate, server, signals)


def _server(
    config: Config, environ: Mapping[str, str], listening: Listening | None, calls: CallLog
) -> tuple[Gate, Server]:
    """The server, not yet started, and its gate, not yet open."""
    from memxd.service.gate import Gate
    from memxd.service.guard import open_guard
    from memxd.service.server import Server

    gate = Gate(
        workers=config.workers,
        max_pending=config.max_pending,
        max_streams=config.max_streams,
        stream_idle=config.stream_idle_seconds,
        on_crowd=_on_crowd,
    )
    server = Server(
        gate,
        _facts(config, environ),
        max_pending=config.max_pending,
        with_reflection=config.reflection,
        calls=calls,
        guard=open_guard(config.auth, config.data_dir),
        listening=listening,
        connections=room_for_connections(),
    )
    return gate, server


def _wait(live: Live, manager: Manager, signals: Signals, calls: CallLog) -> Config:
    """Return when somebody asks to stop, with the settings that hold by then."""

    def idle() -> None:
        manager.alive()
        give_back()

    def hangup() -> None:
        live.reload(manager)
        signals.limit = _stop_seconds(live.config)
        calls.slow_ms = live.config.slow_ms

    signals.wait(idle, manager.every(_TIDY_SECONDS), hangup)
    return live.config


def claim_data(folder: Path) -> FileLock:
    """The lock on the data directory, held. Refused in words of its own: waiting for another socket's daemon to become
    ours, as a background start does for the same socket, would be in vain.
    """
    try:
        return FileLock(folder / "memxd-data.lock", f"the data directory {folder}").acquire()
    except AlreadyRunningError as error:
        raise DataInUseError(
            f"another memxd (pid {error.metadata['pid'] or 'unknown'}) holds the data directory {folder} and serves "
            "another socket; use that socket, stop that daemon, or set MEMXD_DATA_DIR",
            metadata=error.metadata,
        ) from error


def _opening_embedder(config: Config, stack: ExitStack) -> Callable[[], Embedder]:
    """Begin to open the embedder on a thread of its own, since most of that is done without the interpreter's lock;
    answers how to wait for it. Raises then what opening raised. What it needs is imported before: this is the longest
    part of a start, and two threads that import at once hold each other up."""
    from memxd.embed import import_backend

    import_backend(cast("Backend", config.embedder))
    pool = ThreadPoolExecutor(1, "memxd-open-embedder")
    opening = pool.submit(_open_embedder, config)

    def close() -> None:
        pool.shutdown()
        if opening.exception() is None:
            opening.result().close()

    stack.callback(close)
    return opening.result


def _open_engine(config: Config, stack: ExitStack, embedder: Callable[[], Embedder]) -> Engine:
    from memxd._fast import load_kernels
    from memxd.embed import open_former
    from memxd.engine.engine import Engine, Tuning
    from memxd.engine.ids import system_clock, uuid7_factory
    from memxd.engine.profiles import RankingDefaults
    from memxd.model import DAY

    kernels = load_kernels(cast("KernelChoice", config.kernels))
    ranking = RankingDefaults(half_life=int(config.half_life_days * DAY), rrf_k=config.rrf_k)
    engine = Engine.open(
        config.data_dir,
        embedder=embedder,
        kernels=kernels,
        clock=system_clock,
        ids=uuid7_factory(),
        tuning=Tuning(k1=config.bm25_k1, b=config.bm25_b, ranking=ranking),
        readers=config.workers,
        former=lambda model_id: open_former(model_id, _embed_settings(config), config.data_dir),
    )
    stack.callback(engine.close)
    facts = {"kernels": kernels.name, "model": embedder().info.id, "data_dir": str(config.data_dir)}
    log.info("opened", extra={"fields": facts})
    return engine


def _open_embedder(config: Config) -> Embedder:
    from memxd.embed import open_embedder

    return open_embedder(_embed_settings(config), config.data_dir)


def _embed_settings(config: Config) -> EmbedSettings:
    from memxd.embed import EmbedSettings

    return EmbedSettings(
        backend=cast("Backend", config.embedder),
        model=config.model,
        threads=config.embed_threads,
        query_cache=config.query_cache,
        openai_preset=config.openai_preset,
        openai_base_url=config.openai_base_url,
        openai_model=config.openai_model,
        openai_key=config.openai_key,
        openai_dimension=config.openai_dimension,
        openai_batch=config.openai_batch,
        openai_window=config.openai_window,
        openai_timeout=config.openai_timeout,
    )


def _drain(config: Config, gate: Gate, server: Server, signals: Signals) -> None:
    """Let running calls finish, then cancel what is left and wait until it has noticed."""
    log.info("draining", extra={"fields": {"calls": gate.calls.held, "streams": gate.streams.held}})
    server.set_serving(False)
    gate.drain()
    gate.wait_idle(config.drain_seconds, signals.hurry)
    server.stop()
    gate.engine.let_go()  # a service that does not answer would hold up calls and the engine's own threads
    if not gate.wait_idle(_CANCEL_SECONDS, lambda: False):
        left = gate.calls.held + gate.streams.held
        log.warning("calls were still running when the engine closed", extra={"fields": {"calls": left}})


def _facts(config: Config, environ: Mapping[str, str]) -> ProcessFacts:
    from memxd.service.convert.admin import ProcessFacts

    return ProcessFacts(
        version=__version__,
        pid=os.getpid(),
        started_at=time.time_ns() // 1_000,  # the engine's clock would cost its import before the socket answers
        socket_path=str(config.socket),
        data_dir=str(config.data_dir),
        time_zone=config.time_zone or system_time_zone(environ),
        libraries=Libraries(),
    )

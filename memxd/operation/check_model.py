"""The doctor's look at what turns text into vectors: the model's files, the endpoint, the compiled kernels.

Owns those checks. Sends no text anywhere: an endpoint is only connected to. Called by ``doctor.py``.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from memxd.config import Config
from memxd.errors import ModelFileError
from memxd.model import ModelChange, ModelStatus
from memxd.operation.findings import Finding, note, ok, problem

_CONNECT_SECONDS = 5.0
_WORDS_ONLY = "memories are kept and found by words only, marked degraded, until it is there again"


def check_model(config: Config, running: ModelStatus | None, change: ModelChange | None = None) -> list[Finding]:
    """The model in use; ``running`` is what a daemon reports of it, ``change`` of a change to it."""
    if config.embedder == "hashing":
        text, reason = "the embedder is `hashing`", "it knows words, not meaning: it is there for tests"
        return [problem("model", text, reason, "choose the model on board", _set("embedder=onnx"))]
    found = _check_endpoint(config, running) if config.embedder == "openai" else _check_files(config)
    if running is not None and not running.available:
        reason = running.message or _WORDS_ONLY
        found.append(problem("model", "the running daemon cannot embed", reason, "see the log", "memx service logs"))
    return found + ([] if change is None else [_check_change(change)])


def _check_change(change: ModelChange) -> Finding:
    """A change of model under way."""
    text = f"every memory is embedded again for {change.to_id}: {change.done:,} of {change.total:,}"
    meanwhile = "the former model answers" if change.former_serves else "memories are found by words only"
    if change.message:
        return problem("model", f"{text}; held up: {change.message}", meanwhile, "see to that model", "memx models")
    return note("model", text, f"until it is done {meanwhile}", "wait for it", "memx models")


def _check_files(config: Config) -> list[Finding]:
    from memxd.embed.models import damaged_model_files

    name = config.model or "the default model"
    try:
        damaged = damaged_model_files(config.data_dir, config.model)
    except ModelFileError as error:
        reason = "the daemon does not start without its model (exit code 69)"
        return [problem("model", error.message, reason, "choose another model", "memx models use default")]
    if not damaged:
        return [ok("model", f"{name}: every file has its checksum")]
    text = f"{name}: missing or damaged: {', '.join(damaged)}"
    if not config.model:
        return [note("model", text, "the next start makes them anew", "restart the daemon", "memx service restart")]
    reason = "the daemon does not start with a damaged model (exit code 69)"
    return [problem("model", text, reason, "add it again", "memx models add FOLDER --overwrite")]


def _check_endpoint(config: Config, running: ModelStatus | None) -> list[Finding]:
    from memxd.embed.openai_presets import PRESETS

    preset = PRESETS.get(config.openai_preset)
    address = config.openai_base_url or (preset.base_url if preset else "")
    if not address:
        reason = "the daemon does not start without it (exit code 78)"
        command = _set("openai_preset=ollama")
        return [problem("embedder", "no endpoint is set", reason, "set openai_preset or openai_base_url", command)]
    if preset and preset.needs_key and not config.openai_key:
        text, reason = f"{preset.name} wants a key and none is set", "the daemon does not start (exit code 78)"
        return [problem("embedder", text, reason, "write openai_key into the config file", _set("openai_key=-"))]
    if running is not None and running.available:
        return [ok("embedder", f"{address} answers the running daemon")]
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS):
            return [ok("embedder", f"{address} can be reached")]
    except OSError as error:
        text = f"{address} cannot be reached: {error.strerror or type(error).__name__}"
        command = _set("embedder=onnx")
        return [problem("embedder", text, _WORDS_ONLY, "start that service, or use the model on board", command)]


def check_kernels(running: str | None) -> list[Finding]:
    """Whether the compiled kernels run; ``running`` is what a daemon reports ("c" or "py")."""
    found = running
    if found is None:
        from memxd._fast import load_kernels

        found = load_kernels("auto").name
    if found == "c":
        return [ok("kernels", "compiled")]
    reason = "every answer is the same and takes many times longer"
    fix, command = "install again where a C compiler is", "pip install --force-reinstall --no-deps memxd"
    return [note("kernels", "plain Python", reason, fix, command)]


def _set(assignment: str) -> str:
    return f"memx setup --non-interactive --set {assignment}"

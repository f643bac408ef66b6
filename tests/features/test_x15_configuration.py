"""FEATURES X15: a config file, the environment over it, presets of embedding services, and none needed by default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from featurekit import Service, World, ask, causes, contents
from memxd.embed.openai_presets import PRESETS


def write(world: World, text: str, mode: int = 0o600) -> Path:
    path = world.folder / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(world: World, **environ: str) -> str:
    """What `memxd serve` says when it refuses to start with these settings."""
    command = [sys.executable, "-m", "memxd", "serve", "--socket", str(world.socket), "--data-dir", str(world.data_dir)]
    done = subprocess.run(command, env=world.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 78, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_x15_file_then_environment_then_flags(world: World, service: Service) -> None:
    """X15: TOML file, overridden by the environment, overridden by flags."""
    write(world, f'rrf_k = 11\nhalf_life_days = 5\nbm25_b = 0.5\nopenai_key = "k"\nopenai_base_url = "{service.url}"\n')
    extra = {"MEMXD_CONFIG": str(world.folder / "config.toml"), "MEMXD_HALF_LIFE_DAYS": "6", "MEMXD_BM25_B": "0.6"}
    world.serve("--bm25-b", "0.7", extra=extra)
    with world.client() as client:
        ranking = client.status().engine.ranking
    assert (ranking["rrf_k"], ranking["half_life_seconds"], ranking["bm25.b"]) == (11, 6 * 86_400, 0.7)


@pytest.mark.parametrize(
    ("text", "mode", "word"),
    [
        ('openai_key = "sk-very-secret"\n', 0o640, "chmod 600"),
        ("rrf_k = 5\n", 0o622, "chmod 600"),
        ("rrf_q = 5\n", 0o600, "rrf_k"),
        ("rrf_k = 0\n", 0o600, "1 to 10,000"),
        ('embedder = "openai"\nopenai_preset = "openai"\n', 0o600, "openai_key"),
    ],
)
def test_x15_a_wrong_config_stops_the_start_with_one_line(world: World, text: str, mode: int, word: str) -> None:
    """X15: a secret that others can read, an unknown name, a value beyond its limit, a key that lacks: said by name."""
    said = refusal(world, MEMXD_CONFIG=str(write(world, text, mode)))
    assert word in said
    assert "sk-very-secret" not in said


def test_x15_the_five_presets(world: World) -> None:
    """X15: DeepInfra, OpenAI, SiliconFlow, Ollama and LM Studio are known; the local ones need no key."""
    assert set(PRESETS) == {"deepinfra", "openai", "siliconflow", "ollama", "lmstudio"}
    world.serve("--openai-preset", "ollama", embedder="openai")
    with world.client() as client:
        model = client.status().engine.model
        assert (model.id, model.dimension, model.remote) == ("nomic-embed-text@768", 768, False)


def test_x15_a_service_embeds_with_key_model_and_dimension(world: World, service: Service) -> None:
    """X15: base URL, model, key and dimension are used; a preset's own values can be replaced."""
    flags = service.flags("text-x", 64, **{"openai-preset": "openai", "openai-batch": "2"})
    world.serve(*flags, embedder="openai", extra={"MEMXD_OPENAI_KEY": "sk-test"})
    with world.client() as client:
        assert client.status().engine.model.id == "text-x@64"
        client.store("Ada drinks tea.")
        assert contents(ask(client, "what does Ada drink")) == ["Ada drinks tea."]
    assert service.texts == ["Ada drinks tea.", "what does Ada drink"]
    assert {r["model"] for r in service.requests} == {"text-x"}
    assert {h["Authorization"] for h in service.headers} == {"Bearer sk-test"}
    assert "sk-test" not in world.started[0].log


@pytest.mark.model
def test_x15_the_default_needs_no_network(world: World) -> None:
    """X15: with every proxy pointing nowhere the default embedder starts, stores and finds."""
    nowhere = dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    )
    world.serve(embedder="onnx", extra=nowhere)
    with world.client() as client:
        model = client.status().engine.model
        assert (model.backend, model.dimension, model.remote, model.available) == ("onnx", 384, False, True)
        client.store("Zoë is allergic to penicillin.")
        answer = ask(client, "Which medicine is dangerous for Zoë?")
        assert contents(answer) == ["Zoë is allergic to penicillin."]
        assert causes(answer) == []

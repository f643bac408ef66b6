"""Services that speak the OpenAI embeddings protocol, as data.

Owns addresses and defaults of the presets; ``openai`` reads them, ``memx setup`` may show them. Dimensions and windows
are the providers' documented ones for the named model.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """A service. ``window_tokens`` of the model; ``batch`` texts a request; prefixes the model was trained with."""

    name: str
    base_url: str
    model: str
    dimension: int
    window_tokens: int
    batch: int
    needs_key: bool
    query_prefix: str = ""
    passage_prefix: str = ""


_NOMIC = ("search_query: ", "search_document: ")

#: By name, lower case.
PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("deepinfra", "https://api.deepinfra.com/v1/openai", "BAAI/bge-m3", 1024, 8192, 64, True),
        Preset("openai", "https://api.openai.com/v1", "text-embedding-3-small", 1536, 8191, 128, True),
        Preset("siliconflow", "https://api.siliconflow.cn/v1", "BAAI/bge-m3", 1024, 8192, 32, True),
        Preset("ollama", "http://127.0.0.1:11434/v1", "nomic-embed-text", 768, 2048, 16, False, *_NOMIC),
        Preset(
            "lmstudio",
            "http://127.0.0.1:1234/v1",
            "text-embedding-nomic-embed-text-v1.5",
            768,
            2048,
            16,
            False,
            *_NOMIC,
        ),
    )
}

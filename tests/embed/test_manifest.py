"""memxd-model.json: every wrong key is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memxd.embed.manifest import MANIFEST, Golden, ModelManifest
from memxd.errors import ModelFileError

GOOD = {"id": "my-model", "dimension": 8, "pooling": "mean", "window_tokens": 128}


def test_the_four_required_keys_are_enough_and_it_survives_a_round_trip(tmp_path: Path) -> None:
    manifest = ModelManifest.parse(GOOD, "here")
    assert (manifest.normalise, manifest.query_prefix, manifest.input_ids) == (True, "", "input_ids")
    (tmp_path / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    assert ModelManifest.read(tmp_path) == manifest


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": "a/b"}, "id must be 1 to 100"),
        ({"id": None}, "id must be a text"),
        ({"dimension": 0}, "dimension must be a whole number from 1"),
        ({"dimension": True}, "dimension"),
        ({"pooling": "max"}, "pooling must be one of mean, cls, none"),
        ({"window_tokens": 15}, "window_tokens"),
        ({"normalise": 1}, "normalise must be true or false"),
        ({"tau": 1.5}, "tau must be a number from -1 to 1"),
        ({"cosine_low": 0.9}, "cosine_low must be below cosine_high"),
        ({"files": {"../x": "0" * 64}}, "files must be"),
        ({"files": {"x": "abc"}}, "files must be"),
        ({"golden": [{"text": "a"}]}, "golden must be"),
        ({"poling": "mean"}, "unknown keys poling"),
    ],
)
def test_a_wrong_key_is_named(change: dict[str, object], told: str) -> None:
    with pytest.raises(ModelFileError, match=f"here: {told}"):
        ModelManifest.parse({**GOOD, **change}, "here")


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no model folder"):
        ModelManifest.read(tmp_path)
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(ModelFileError, match="not JSON"):
        ModelManifest.read(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    with pytest.raises(ModelFileError, match="must hold a JSON object"):
        ModelManifest.read(tmp_path)


def test_golden_vectors_survive_and_damage_is_told() -> None:
    vector = np.array([0.6, 0.8], np.float32)
    np.testing.assert_allclose(Golden.of("a", vector).unit(), vector, atol=1e-3)
    for damaged in ("???", "AAAA", "AAA=", ""):
        with pytest.raises(ModelFileError, match="golden vector is damaged"):
            Golden("a", damaged).unit()

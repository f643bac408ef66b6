"""Model folders: added, listed, opened, verified; every kind of bad folder refused with its reason."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memxd.embed import EmbedSettings, open_embedder
from memxd.embed.loaded import LoadedModel
from memxd.embed.manifest import MANIFEST
from memxd.embed.models import add_model, find_model, list_models, open_model, verify_model
from memxd.errors import EmbedderUnavailableError, ModelFileError

Make = Callable[..., Path]


def _rewrite(folder: Path, **keys: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def test_a_folder_is_opened_by_its_path(tiny_folder: Make, tmp_path: Path) -> None:
    embedder = open_embedder(EmbedSettings(model=str(tiny_folder()), threads=1), tmp_path)
    assert embedder.info.id.startswith("tiny-")
    cat, both = embedder.embed_passages(["cat", "cat dog"])
    assert float(np.linalg.norm(both)) == pytest.approx(1, abs=1e-6)
    assert embedder.embed_query("cat") @ cat > embedder.embed_query("cat") @ both
    assert embedder.split("cat. dog.") == [(0, 9)]
    embedder.close()


def test_pooling_is_as_the_manifest_says(tiny_folder: Make) -> None:
    mean, cls = (LoadedModel.open(tiny_folder(p, pooling=p)) for p in ("mean", "cls"))
    # [CLS] comes first whatever the text is.
    assert np.array_equal(cls.embed("", "cat"), cls.embed("", "dog"))
    assert not np.array_equal(mean.embed("", "cat"), mean.embed("", "dog"))


def test_prefixes_and_windows_count(tiny_folder: Make) -> None:
    model = LoadedModel.open(tiny_folder(query_prefix="query: ", window_tokens=16))
    assert model.capacity == 16 - 2 - 2
    assert not np.array_equal(model.embed("query: ", "cat"), model.embed("", "cat"))
    windows = model.windows("query: ", "cat " * 25)
    assert [len(ids) for ids in windows] == [13, 13, 11]
    assert all(ids[:3] == [1, 5, 6] and ids[-1] == 2 for ids in windows)


def test_everything_that_shapes_vectors_is_in_the_id(tiny_folder: Make) -> None:
    folder = tiny_folder()
    first = LoadedModel.open(folder).id
    assert LoadedModel.open(folder).id == first
    _rewrite(folder, tau=0.5)
    assert LoadedModel.open(folder).id == first
    _rewrite(folder, query_prefix="query: ")
    assert LoadedModel.open(folder).id != first


def test_token_types_are_fed_when_the_graph_wants_them(tiny_folder: Make) -> None:
    folder = tiny_folder("typed", inputs=("input_ids", "token_type_ids"))
    assert LoadedModel.open(folder).embed("", "cat").shape == (8,)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"dimension": 9}, r"does not work: .*shape \(8,\), not \(9,\)"),
        ({"pooling": "none"}, "does not work"),
        ({"output": "vector"}, "no output vector; its outputs are states"),
        ({"input_ids": "ids"}, "no input ids; its inputs are"),
        ({"attention_mask": "mask"}, "wants inputs that memxd does not know: attention_mask"),
        ({"normalise": False}, "not of length 1"),
        ({"query_prefix": "cat " * 30}, "leaves no room"),
        ({"files": {"model.onnx": "0" * 64}}, r"missing or damaged: model\.onnx"),
    ],
)
def test_a_folder_that_does_not_keep_its_word_is_refused(tiny_folder: Make, keys: dict[str, object], told: str) -> None:
    with pytest.raises(ModelFileError, match=told):
        LoadedModel.open(tiny_folder(**keys))


def test_damaged_files_are_refused(tiny_folder: Make) -> None:
    folder = tiny_folder()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFileError, match="cannot read the tokenizer"):
        LoadedModel.open(folder)
    (folder / "model.onnx").write_bytes(b"\x08\x09garbage")
    with pytest.raises(ModelFileError, match="onnxruntime cannot open"):
        LoadedModel.open(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelFileError, match=r"has no model\.onnx"):
        LoadedModel.open(folder)


def test_without_the_extra_the_error_names_it(tiny_folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModelFileError, match=r"memxd\[models\]"):
        LoadedModel.open(folder)


def test_add_list_use_verify(tiny_folder: Make, tmp_path: Path) -> None:
    data = tmp_path / "data"
    added = add_model(data, tiny_folder())
    assert added.path == data / "models" / "tiny"
    assert [m.name for m in list_models(data)] == ["multilingual-e5-small", "tiny"]
    assert find_model(data, "tiny") == added
    assert (added.dimension, added.window_tokens, added.problem) == (8, 32, "")
    report = verify_model(data, "tiny")
    assert (report.problem, report.damaged, report.id) == ("", (), added.id)
    assert report.golden_cosine is not None
    assert report.golden_cosine > 0.999
    model, message = open_model(data, "tiny")
    assert model.id == added.id
    assert "tiny" in message
    with pytest.raises(ModelFileError, match="installed already"):
        add_model(data, tmp_path / "tiny")
    assert add_model(data, tmp_path / "tiny", overwrite=True).id == added.id


def test_adding_a_bad_folder_changes_nothing(tiny_folder: Make, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(ModelFileError):
        add_model(data, tiny_folder(dimension=9))
    with pytest.raises(ModelFileError, match="belongs to the default model"):
        add_model(data, tiny_folder("multilingual-e5-small"))
    assert len(list_models(data)) == 1


def test_verify_and_open_notice_damage(tiny_folder: Make, tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = add_model(data, tiny_folder()).path
    assert path is not None
    raw = bytearray((path / "model.onnx").read_bytes())
    raw[-40] ^= 0x10
    (path / "model.onnx").write_bytes(raw)
    report = verify_model(data, "tiny")
    assert report.damaged == ("model.onnx",)
    with pytest.raises(ModelFileError, match=r"missing or damaged: model\.onnx"):
        open_model(data, "tiny")
    (path / MANIFEST).write_text("{")
    assert "not JSON" in verify_model(data, "tiny").problem
    assert "not JSON" in list_models(data)[1].problem


def test_a_machine_that_computes_other_vectors_is_told(
    tiny_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    add_model(data, tiny_folder())
    monkeypatch.setattr(LoadedModel, "worst_golden", lambda *_: 0.7)
    assert "cosine 0.7000" in verify_model(data, "tiny").problem
    with pytest.raises(ModelFileError, match="computes other vectors"):
        open_model(data, "tiny")


@pytest.mark.parametrize("name", ["none", "../x", "/no/such/folder", ".", ".."])
def test_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match="there is no model"):
        find_model(tmp_path, name)


@pytest.mark.model
def test_the_default_model_is_listed_and_verified(default_dir: Path, tmp_path: Path) -> None:
    (listed, *_) = list_models(default_dir)
    assert listed.name == "multilingual-e5-small"
    assert listed.path is not None
    assert listed.size_bytes > 70_000_000
    assert list_models(tmp_path)[0].path is None
    report = verify_model(default_dir, "")
    assert report.problem == ""
    assert report.golden_cosine is not None


def test_a_failing_model_makes_the_embedder_unavailable(
    tiny_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = open_embedder(EmbedSettings(model=str(tiny_folder())), tmp_path)

    def fail(*_: object) -> None:
        raise EmbedderUnavailableError("the embedding model failed: out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(LoadedModel, "embed", fail)
        with pytest.raises(EmbedderUnavailableError):
            embedder.embed_query("cat")
        assert not embedder.available
        assert "out of memory" in embedder.message
    embedder.embed_query("cat")
    assert embedder.available
    embedder.close()

"""The models on this machine: which there are, adding one, verifying one, opening one by name.

Owns ``<data_dir>/models`` as people see it. Returns data and prints nothing; ``memx models`` shows it, and which model
is in use is the settings' matter (key ``model``: "" or the default's name, an installed name, or a folder's path).
``factory`` opens models through ``open_model``.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from memxd.embed.convert import NAME, OUTPUT_SHA256, expected_manifest, is_intact, model_id
from memxd.embed.default_model import default_folder, open_default, wheel_folder
from memxd.embed.e5_graph import Variant
from memxd.embed.folders import install_folder, models_lock, models_root
from memxd.embed.loaded import LoadedModel, fingerprint, model_files
from memxd.embed.manifest import MANIFEST, Golden, ModelManifest, damaged_files, file_sha256
from memxd.errors import EmbedderUnavailableError, ModelFileError

Origin: TypeAlias = Literal["default", "added", "folder"]

_VARIANTS: tuple[Variant, ...] = ("i8", "q4")
#: Texts whose vectors are kept when a model is added, to notice later that this machine computes others.
_GOLDEN_TEXTS = ("Which train does Anna take to work on Mondays?", "王伟每周三晚上七点在人民公园跑步。")


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that can be named in the settings.

    ``path`` None = the default model, not converted yet (the first start does it). ``size_bytes`` of its files.
    ``problem`` "" = none seen without opening it.
    """

    name: str
    id: str
    origin: Origin
    dimension: int
    window_tokens: int
    variant: str
    path: Path | None
    size_bytes: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify_model`` found: sound when ``problem`` is "". ``golden_cosine`` None = it has no golden vectors."""

    name: str
    id: str
    damaged: tuple[str, ...]
    golden_cosine: float | None
    golden_minimum: float
    problem: str


def list_models(data_dir: Path) -> list[InstalledModel]:
    """The default model first, then the added ones by name. Broken ones are listed with their problem."""
    root = models_root(data_dir)
    added = [
        _describe(path, "added")
        for path in (sorted(root.iterdir()) if root.is_dir() else [])
        if path.is_dir() and not path.name.startswith((".", f"{NAME}-"))
    ]
    return [_describe_default(data_dir), *added]


def find_model(data_dir: Path, name: str) -> InstalledModel:
    """The model a setting ``model = name`` would open; ModelFileError when there is none (for ``memx models use``)."""
    if _is_default(name):
        return _describe_default(data_dir)
    folder, origin = _folder_of(data_dir, name)
    return _describe(folder, origin)


def open_model(data_dir: Path, name: str) -> tuple[LoadedModel, str]:
    """Open by setting; the second value tells people why this variant. ModelFileError when it cannot be used."""
    if _is_default(name):
        return open_default(data_dir)
    folder, origin = _folder_of(data_dir, name)
    model = LoadedModel.open(folder)
    worst = model.worst_golden(model.manifest.golden)
    if worst < model.manifest.golden_minimum:
        raise ModelFileError(
            f"model {name} computes other vectors than when it was added (cosine {worst:.4f}): add it again"
        )
    return model, f"{origin} model {model.manifest.id}"


def open_by_id(data_dir: Path, id: str) -> LoadedModel | None:
    """The installed model whose vectors carry this id, None when there is none. ModelFileError when it is damaged."""
    for variant in _VARIANTS:
        if id == model_id(variant):
            return LoadedModel.open_checked(default_folder(data_dir, variant), expected_manifest(variant), id)
    for model in list_models(data_dir):
        if model.origin == "added" and model.id == id:
            return open_model(data_dir, model.name)[0]
    return None


def add_model(data_dir: Path, folder: Path, *, overwrite: bool = False) -> InstalledModel:
    """Check a model folder by running it, then copy it to ``<data_dir>/models/<id>``, hashes and golden vectors added.

    ModelFileError when the folder is no working model, when one of this id is installed already (unless
    ``overwrite``), or when the disk refuses; then nothing changed.
    """
    opened = LoadedModel.open(folder)
    manifest = opened.manifest
    if manifest.id == NAME or manifest.id.startswith(f"{NAME}-"):
        raise ModelFileError(f"{MANIFEST}: the id {manifest.id} belongs to the default model; choose another")
    names = model_files(folder)
    complete = replace(
        manifest,
        files={name: file_sha256(folder / name) for name in names},
        golden=_golden(opened),
    )

    def fill(fresh: Path) -> None:
        for name in names:
            shutil.copyfile(folder / name, fresh / name)
        (fresh / MANIFEST).write_text(complete.to_json(), encoding="utf-8")
        if bad := damaged_files(fresh, complete.files):
            raise ModelFileError(f"the copy differs from the model in {', '.join(bad)}; was it being written?")

    root = models_root(data_dir)
    with models_lock(root):
        if (root / manifest.id).exists() and not overwrite:
            raise ModelFileError(f"a model {manifest.id} is installed already")
        return _describe(install_folder(root, manifest.id, fill), "added")


def verify_model(data_dir: Path, name: str) -> Verification:
    """Hash every file and compute the golden vectors again. ModelFileError only when there is no such model."""
    if _is_default(name):
        return _verify_default(data_dir)
    folder, _ = _folder_of(data_dir, name)
    try:
        manifest = ModelManifest.read(folder)
    except ModelFileError as error:
        return Verification(name, "", (), None, 0.0, error.message)
    damaged = tuple(damaged_files(folder, manifest.files))
    if damaged:
        problem = f"missing or damaged files: {', '.join(damaged)}"
        return Verification(name, manifest.id, damaged, None, manifest.golden_minimum, problem)
    try:
        return _verify_golden(name, LoadedModel.open(folder))
    except ModelFileError as error:
        return Verification(name, manifest.id, (), None, manifest.golden_minimum, error.message)


def damaged_model_files(data_dir: Path, name: str) -> list[str]:
    """Missing and damaged files of the model of a setting, by their hashes alone: nothing is run, nothing mended.

    Empty as well for the default model before its first conversion. ModelFileError when there is no such model or its
    manifest cannot be read.
    """
    if not _is_default(name):
        folder, _ = _folder_of(data_dir, name)
        return damaged_files(folder, ModelManifest.read(folder).files)
    there = [v for v in _VARIANTS if wheel_folder(v) is None and (models_root(data_dir) / model_id(v)).is_dir()]
    return [
        f"{model_id(variant)}/{file}"
        for variant in there
        for file in damaged_files(models_root(data_dir) / model_id(variant), OUTPUT_SHA256[variant])
    ]


def _verify_default(data_dir: Path) -> Verification:
    """Opening hashes the files and converts again what is damaged."""
    try:
        model, _ = open_default(data_dir)
    except ModelFileError as error:
        return Verification(NAME, "", (), None, 0.0, error.message)
    return _verify_golden(NAME, model)


def _verify_golden(name: str, model: LoadedModel) -> Verification:
    manifest = model.manifest
    cosine = model.worst_golden(manifest.golden) if manifest.golden else None
    low = cosine is not None and cosine < manifest.golden_minimum
    problem = f"golden vectors at cosine {cosine:.4f}, wanted {manifest.golden_minimum}" if low else ""
    return Verification(name, model.id, (), cosine, manifest.golden_minimum, problem)


def _golden(model: LoadedModel) -> tuple[Golden, ...]:
    """Vectors of two short texts; a text as long as the window is run as well, because some graphs promise too much."""
    prefix = model.manifest.query_prefix
    try:
        model.embed(prefix, "memory " * model.manifest.window_tokens)
        return tuple(Golden.of(prefix + text, model.embed("", prefix + text)) for text in _GOLDEN_TEXTS)
    except EmbedderUnavailableError as error:
        raise ModelFileError(f"{MANIFEST}: window_tokens is more than the model can read: {error}") from error


def _is_default(name: str) -> bool:
    return name in {"", NAME}


def _folder_of(data_dir: Path, name: str) -> tuple[Path, Origin]:
    """An installed name's folder, or the folder that a path names."""
    if "/" in name or name.startswith("~"):
        folder, origin = Path(name).expanduser(), "folder"
    else:
        folder, origin = models_root(data_dir) / name, "added"
    if name in {".", ".."} or not folder.is_dir():
        raise ModelFileError(f"there is no model {name}; `memx models list` shows what is installed")
    return folder, "folder" if origin == "folder" else "added"


def _describe(folder: Path, origin: Origin) -> InstalledModel:
    name = folder.name if origin == "added" else str(folder)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    try:
        manifest = ModelManifest.read(folder)
        full_id = f"{manifest.id}-{fingerprint(folder, manifest)}"
    except ModelFileError as error:
        return InstalledModel(name, "", origin, 0, 0, "", folder, size, error.message)
    return InstalledModel(
        name, full_id, origin, manifest.dimension, manifest.window_tokens, manifest.variant, folder, size
    )


def _describe_default(data_dir: Path) -> InstalledModel:
    """As it lies on disk: the data wheel's, else the first intact conversion, else not converted yet."""
    for variant in _VARIANTS:
        try:
            folder = wheel_folder(variant) or models_root(data_dir) / model_id(variant)
        except ModelFileError as error:
            return InstalledModel(NAME, "", "default", 384, 512, variant, None, 0, error.message)
        if is_intact(folder, variant):
            return replace(_describe(folder, "default"), name=NAME, id=model_id(variant))
    return InstalledModel(NAME, model_id("i8"), "default", 384, 512, "", None, 0)

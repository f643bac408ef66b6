"""The Export and Import streams: lines out, lines in.

Owns the cutting of messages into lines and the shape of both streams; the reading of the client's stream is
``arrivals.py``'s, the lines are the engine's. Called by ``memory_servicer.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from memxd.model import Conflict, Deadline, ExportStep, ImportStep
from memxd.service.arrivals import AHEAD, Arrivals
from memxd.service.convert import values
from memxd.service.gate import Gate
from memxd.service.running import Undecodable, undecodable
from memxd.v1 import memory_service_pb2 as pb

#: Messages of an Import that wait at most; each holds up to a megabyte or so of lines.
_MESSAGES = 4


def export(request: pb.ExportRequest, gate: Gate, deadline: Deadline) -> Iterator[pb.ExportResponse]:
    """A scope as lines, part by part."""
    scope = values.scope(request)
    for step in gate.engine.export(scope, request.include_private, request.vectors, deadline=deadline):
        gate.check_draining()
        yield _part(step)


def import_lines(requests: Iterator[pb.ImportRequest], gate: Gate, deadline: Deadline) -> Iterator[pb.ImportResponse]:
    """Lines as they come, and how far they are settled."""
    # Messages of lines are large: few of them wait.
    arrivals = Arrivals(requests, gate, lambda _: AHEAD // _MESSAGES)
    try:
        arrived = map(_sound, arrivals.each())
        first = next(arrived, None)
        if first is None:
            return
        steps = gate.engine.import_lines(
            values.scope(first),
            _batches(first, arrived),
            values.enum_or_none(Conflict, first.on_conflict, "on_conflict"),
            first_line=1 if (line := values.optional(first, "first_line")) is None else line,
            deadline=deadline,
        )
        for step in steps:
            yield _progress(step)
    finally:
        arrivals.close()


def _sound(request: pb.ImportRequest | Undecodable) -> pb.ImportRequest:
    if isinstance(request, Undecodable):
        raise undecodable()
    return request


def _batches(first: pb.ImportRequest, rest: Iterator[pb.ImportRequest]) -> Iterator[list[bytes]]:
    message: pb.ImportRequest | None = first
    while message is not None:
        lines = message.lines.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        yield lines
        message = next(rest, None)


def _part(step: ExportStep) -> pb.ExportResponse:
    return pb.ExportResponse(
        lines=step.lines,
        done=step.done,
        total=step.total,
        finished=step.finished,
        private_left_out=step.private_left_out,
    )


def _progress(step: ImportStep) -> pb.ImportResponse:
    response = pb.ImportResponse(
        lines=step.lines,
        added=step.added,
        unchanged=step.unchanged,
        replaced=step.replaced,
        kept=step.kept,
        refused=step.refused,
        revision=step.revision,
    )
    for refusal in step.refusals:
        response.refusals.add(
            line=refusal.line, kind=refusal.kind, id=refusal.id, reason=refusal.reason, message=refusal.message
        )
    return response

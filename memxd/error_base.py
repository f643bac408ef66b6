"""What every refusal is: a message for people, a stable reason, whether a retry may help. See ``errors.py``.

Owns the base class and the shape of an invalid field. Imports only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

#: ``google.rpc.ErrorInfo.domain`` of every refusal.
DOMAIN = "memxd"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One invalid field of a request. ``field`` is the path as the proto spells it, for example ``memory.content`` or
    ``filter.tags_any[3]``; ``description`` says what is wrong and names the limit.
    """

    field: str
    description: str


class MemxdError(Exception):
    """Base of every refusal.

    ``message`` is for people and says what to do next; it never holds stored text, another scope's data or a
    file-system path of the daemon (start-up errors excepted: they go to the operator only). ``metadata`` holds
    further facts as short strings.
    """

    reason: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})
        self.violations: tuple[FieldViolation, ...] = ()

    def __str__(self) -> str:
        return self.message

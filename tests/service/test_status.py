"""The error table: every class has a wire code, and every refusal carries its facts in a bounded size."""

from __future__ import annotations

import pytest
from google.rpc import code_pb2, error_details_pb2
from grpc_status import rpc_status

from memxd import errors
from memxd.errors import BY_REASON, FieldViolation, InvalidArgumentError, MemxdError, OverloadedError
from memxd.service import status
from memxd.v1 import memory_service_pb2


@pytest.mark.parametrize("cls", list(BY_REASON.values()), ids=list(BY_REASON))
def test_every_error_class_has_a_wire_code_and_error_info(cls: type[MemxdError]) -> None:
    error = cls("what to do", metadata={"key": "value"})
    made = status.status_of(error)
    info = error_details_pb2.ErrorInfo()
    assert made.details[0].Unpack(info)
    assert (info.domain, info.reason, dict(info.metadata)) == ("memxd", cls.reason, {"key": "value"})
    assert code_pb2.Code.Name(made.code) == status.code_of(error).name


def test_every_class_but_those_for_the_operator_is_mapped_by_itself_or_a_near_base() -> None:
    for cls in BY_REASON.values():
        nearest = next(base for base in cls.__mro__ if base in status.CODES)
        assert nearest is not MemxdError, f"{cls.__name__} needs a line in CODES"


def test_subclasses_follow_their_base() -> None:
    class Finer(errors.MemoryNotFoundError):
        reason = "FINER"

    assert status.code_of(Finer("x")).name == "NOT_FOUND"


def test_field_violations_travel_as_bad_request() -> None:
    made = status.status_of(InvalidArgumentError.field("memory.content", "must not be blank"))
    bad = error_details_pb2.BadRequest()
    assert made.details[1].Unpack(bad)
    assert [(v.field, v.description) for v in bad.field_violations] == [("memory.content", "must not be blank")]


def test_overload_says_when_to_retry() -> None:
    made = status.status_of(OverloadedError("busy", metadata={"retry_after_ms": "1500"}))
    retry = error_details_pb2.RetryInfo()
    assert made.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 1500


@pytest.mark.parametrize("letter", ["x", "é", "记", "🦊"])
def test_a_refusal_fits_the_trailer_whatever_its_texts(letter: str) -> None:
    long = letter * 5_000
    error = InvalidArgumentError(
        long,
        violations=tuple(FieldViolation(long, long) for _ in range(50)),
        metadata={f"key{n}": long for n in range(50)},
    )
    made = status.status_of(error)
    trailer = rpc_status.to_status(made)
    percent_encoded = sum(1 if b < 0x80 else 3 for b in made.message.encode())
    details = sum(len(value) * 4 // 3 for _, value in trailer.trailing_metadata)
    assert percent_encoded + details < 8_000
    assert made.message.endswith("...")


def test_an_item_error_says_the_same_as_a_failed_call() -> None:
    message = memory_service_pb2.ItemError()
    status.fill_item_error(message, InvalidArgumentError.field("memory.tags[3]", "at most 64 characters", limit="64"))
    assert message.code == code_pb2.INVALID_ARGUMENT
    assert message.reason == "INVALID_ARGUMENT"
    assert message.field == "memory.tags[3]"
    assert message.metadata["limit"] == "64"
    assert not message.retryable

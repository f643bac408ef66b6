"""Page tokens open only the list that handed them out."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.engine import paging
from memxd.engine.canonical import digest
from memxd.errors import InvalidArgumentError
from memxd.model import Filter, Scope

KINDS = (int | float, str)


def test_a_token_gives_its_cursor_back() -> None:
    token = paging.encode("bound", [2**60 + 1, "id"])
    assert paging.decode("bound", token, KINDS) == [2**60 + 1, "id"]


def test_no_token_is_the_first_page() -> None:
    assert paging.decode("bound", "", KINDS) is None


def test_a_token_of_another_list_is_refused() -> None:
    token = paging.encode("bound", [1, "id"])
    with pytest.raises(InvalidArgumentError, match="another scope, filter or order"):
        paging.decode("other", token, KINDS)


@given(st.text(max_size=80))
def test_any_other_text_is_refused_with_the_field(text: str) -> None:
    if not text:
        return
    with pytest.raises(InvalidArgumentError) as error:
        paging.decode("bound", text, KINDS)
    assert error.value.violations[0].field == "page_token"


@given(st.integers(0, 60), st.integers(1, 255))
def test_a_changed_token_is_refused(position: int, change: int) -> None:
    token = paging.encode("bound", [1, "id"])
    at = position % len(token)
    broken = token[:at] + chr((ord(token[at]) + change) % 128 or 65) + token[at + 1 :]
    if broken == token:
        return
    with pytest.raises(InvalidArgumentError):
        paging.decode("bound", broken, KINDS)


def forged(body: bytes) -> str:
    """A token with a right checksum around a body of one's own."""
    return base64.urlsafe_b64encode(hashlib.blake2b(body, digest_size=4).digest() + body).decode().rstrip("=")


@pytest.mark.parametrize("cursor", ["NaN,1", 'NaN,"id"', 'Infinity,"id"', '1e400,"id"', f'{10**30},"id"', 'true,"id"'])
def test_a_forged_cursor_that_no_store_can_compare_with_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArgumentError):
        paging.decode("bound", forged(b'[1,"bound",[%s]]' % cursor.encode()), KINDS)


@pytest.mark.parametrize("depth", [400, 100_000])
def test_a_forged_token_that_nests_without_end_is_refused(depth: int) -> None:
    with pytest.raises(InvalidArgumentError):
        paging.decode("bound", forged(b"[" * depth), KINDS)


def test_a_digest_does_not_depend_on_the_order_of_sets_and_maps() -> None:
    one = digest(Scope("a", "b"), Filter(tags_any=frozenset({"x", "y"}), metadata={"p": 1, "q": [2, 3]}))
    two = digest(Scope("a", "b"), Filter(tags_any=frozenset({"y", "x"}), metadata={"q": [2, 3], "p": 1}))
    assert one == two
    assert one != digest(Scope("a", "b"), Filter(tags_any=frozenset({"x"}), metadata={"p": 1, "q": [2, 3]}))

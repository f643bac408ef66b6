"""The model that a store's vectors are of is found by its id, as far as it is on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from memxd.embed import EmbedSettings, open_former


@pytest.mark.parametrize("dimension", [64, 384, 768])
def test_the_hashing_stand_in_is_known_by_its_id(tmp_path: Path, dimension: int) -> None:
    former = open_former(f"hashing-{dimension}-1", EmbedSettings(), tmp_path)
    assert former is not None
    assert (former.info.id, former.info.dimension) == (f"hashing-{dimension}-1", dimension)
    former.close()


@pytest.mark.parametrize("id", ["", "nobody-knows-it", "text-embedding-3-small@1536", "hashing-384-2", "../x"])
def test_what_is_not_here_is_none(tmp_path: Path, id: str) -> None:
    assert open_former(id, EmbedSettings(), tmp_path) is None

"""Frozen records at the price of plain ones, for the places that make dozens of them for one answer.

A frozen dataclass sets each field through ``object.__setattr__``: 4 microseconds for a Memory. ``quick`` gives a maker
of the same records that fills in an ordinary object of the same layout and then makes it one of the class: half a
microsecond. What comes out is an instance of the class like any other, frozen from there on. Owns nothing else. Called
by the store's codec and the client's conversion.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def quick(cls: Callable[P, T]) -> Callable[P, T]:
    """A maker with the signature of ``cls``, a dataclass with frozen=True and slots=True that inherits from none.

    Raises TypeError when the class is of another kind.
    """
    frozen = cast("type[Any]", cls)

    def become(self: Any) -> None:
        self.__class__ = frozen

    fields = [(each.name, each.type, _default(each)) for each in dataclasses.fields(frozen)]
    maker = dataclasses.make_dataclass(
        frozen.__name__, fields, slots=True, eq=False, repr=False, namespace={"__post_init__": become}
    )
    if frozen.__bases__ != (object,) or getattr(frozen, "__slots__", None) != maker.__slots__:  # type: ignore[attr-defined]
        raise TypeError(f"{frozen.__name__} is no plain dataclass with slots")
    return cast("Callable[P, T]", maker)


def _default(of: dataclasses.Field[Any]) -> Any:
    if of.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=of.default_factory)
    return dataclasses.field(default=of.default)

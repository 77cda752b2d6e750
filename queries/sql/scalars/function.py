"""The definition of a scalar function: how to apply it, and the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from .scalars import Scalar, Scalars

NUMBER = ("whole", "number")
ANY = ("whole", "number", "text", "boolean", "time", "clock", "list", "struct", "bytes")
TEXT, WHOLE, TIMES, LIST, TRUTH = ("text",), ("whole",), ("time",), ("list",), ("boolean",)


@dataclass(frozen=True)
class Function:
    """A scalar function: the kinds of its arguments, of which `optional` may be omitted.

    With `more`, the last kind applies to any number of further arguments. With `unit`, the first argument is
    a unit of time, which may be a bare word.
    """

    make: Callable[..., Scalar]
    kinds: tuple[tuple[str, ...], ...]
    optional: int = 0
    more: bool = False
    unit: bool = False

    @property
    def arguments(self) -> tuple[int, int]:
        """The smallest and the largest number of arguments."""
        return len(self.kinds) - self.optional, 10_000 if self.more else len(self.kinds)

    def kinds_of(self, count: int) -> list[tuple[str, ...]]:
        """The kinds of a number of arguments."""
        return [*self.kinds, *self.kinds[-1:] * (count - len(self.kinds))]


def constant_text(one: Scalar, name: str) -> str:
    """The text of a constant. Raises `ValueError` for anything else."""
    if not isinstance(one.literal, str):
        raise ValueError(f"{name} must be a constant text")
    return one.literal


def constant_whole(one: Scalar, name: str) -> int:
    """The value of a constant. Raises `ValueError` for anything but a whole number."""
    if not isinstance(one.literal, int) or isinstance(one.literal, bool):
        raise ValueError(f"{name} must be a constant whole number")
    return one.literal


def method(path: str, *given: Any) -> Callable[..., Scalar]:
    """A function that is a method of Polars' expressions."""
    return lambda make, one: make.call(one, path, *given)


def counted(path: str) -> Callable[..., Scalar]:
    """Like `method`, for one that counts, as a BIGINT."""
    return lambda make, one: make.cast(make.call(one, path), pl.Int64())


def where(make: Scalars, condition: Scalar, one: Scalar) -> Scalar:
    """A value if a condition holds, else null."""
    return make.when([(condition, one)], None)


def first_line(error: Exception) -> str:
    """Polars' message, without the expression that it names."""
    return " ".join(str(error).partition("This error")[0].split())

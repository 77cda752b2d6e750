"""One transformation of a stream's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import signature
from typing import Any, Literal, Protocol

from ...sketches.core.lazy import pl
from .expression_text import expression_text
from .row_wise import check_row_wise, reads_columns

Verb = Literal["filter", "with_columns", "explode", "select"]


@cache
def _empty_stays() -> dict[str, Any]:
    """Make an empty list leave a row with a null, which isn't Polars' default where there is a choice."""
    choice = "empty_as_null" in signature(pl.LazyFrame.explode).parameters
    return {"empty_as_null": True, "keep_nulls": True} if choice else {}


class RowStep(Protocol):
    """The interface of all steps: rows in, rows out, independent of how batches are cut."""

    @property
    def verb(self) -> str:
        """The stream's method that adds it."""

    @property
    def drops_rows(self) -> bool:
        """Whether it may change the number of rows."""

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` if it can't be applied to rows of these columns."""

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """`frame` transformed; `carried` names columns that must not be dropped."""

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, and the rest in words."""


@dataclass(frozen=True, eq=False)
class Step:
    """One transformation of rows. Its expressions depend on one row at a time, never on its neighbours."""

    verb: Verb
    expressions: tuple[pl.Expr, ...]

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `ValueError` unless it transforms each row of a frame of these columns independently."""
        if self.verb == "explode":
            return
        for expression in self.expressions:
            check_row_wise(self.verb, expression, schema)
        if self.verb == "select" and not any(map(reads_columns, self.expressions)):
            raise ValueError(
                "select: none of its expressions reads a column, so only one row of each batch would be "
                "left; select a column as well, or add the constants with with_columns"
            )

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """`frame` transformed; `carried` names columns that a selection must not drop."""
        if self.verb == "select":
            return frame.select(*self.expressions, *carried)
        if self.verb == "explode":
            names = [expression.meta.output_name() for expression in self.expressions]
            return frame.explode(names, **_empty_stays())
        return getattr(frame, self.verb)(*self.expressions)

    @property
    def drops_rows(self) -> bool:
        """Whether it may change the number of rows."""
        return self.verb in ("filter", "explode")

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, and each expression in words."""
        return [self.verb, *self._texts]

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """Its expressions in words, built once: a run needs its definition in a dozen places."""
        return tuple(map(expression_text, self.expressions))

"""Filter and transform messages, and compute their keys, by Polars expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from ..batch import Batch, DeadLine
from ..component import Place
from .filter import REASON

_NOT_TEXT = "not UTF-8 text, which the expression needs"


@dataclass(frozen=True, kw_only=True)
class Expression:
    """Expressions in Polars' SQL over the column `value`, the message as text.

    `filter` keeps messages for which it is true and drops the others, `value` replaces the message, and `key`
    is its key. Messages that aren't UTF-8, or for which an expression can't be computed or `value` is null,
    become dead letters.
    """

    filter: str = ""
    value: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if not (self.filter or self.value or self.key):
            raise ValueError("set filter, value or key to an expression, got none of them")
        for name in ("filter", "value", "key"):
            if text := getattr(self, name):
                _checked(name, text)

    def open(self, place: Place) -> Expression:
        """See `InterceptorSettings`."""
        return self

    def apply(self, batch: Batch) -> Batch:
        """See `Interceptor`."""
        batch, texts = _as_text(batch)
        frame = pl.DataFrame({"value": texts})
        if self.filter:
            kept = frame.select(_checked("filter", self.filter).fill_null(False)).to_series().to_numpy()
            batch, frame = batch.where(kept, REASON), frame.filter(kept)
        if self.key:
            keys = frame.select(_checked("key", self.key).cast(pl.String)).to_series().to_list()
            batch = replace(batch, keys=[None if key is None else key.encode() for key in keys])
        if self.value:
            batch = _with_values(
                batch, frame.select(_checked("value", self.value).cast(pl.String)).to_series()
            )
        return batch


def _checked(name: str, text: str) -> pl.Expr:
    """Parse an expression with the required type. Raises `ValueError` for other text."""
    try:
        expression = pl.sql_expr(text)
        kind = pl.LazyFrame(schema={"value": pl.String}).select(expression).collect_schema().dtypes()[0]
    except Exception as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{name} must be an expression of Polars' SQL over value, got {text!r}: {why}"
        ) from None
    if name == "filter" and kind != pl.Boolean:
        raise ValueError(f"filter must be true or false, got {text!r}, which is {kind}")
    return expression


def _as_text(batch: Batch) -> tuple[Batch, pl.Series]:
    """Return the messages that are valid text, and their texts."""
    array = batch.to_arrow()
    try:
        return batch, pl.Series(array.cast(pa.large_string()))
    except pa.ArrowInvalid:
        texts = [_decoded(value) for value in batch.values()]
    kept = np.array([text is not None for text in texts])
    dead = [DeadLine(_NOT_TEXT, batch.value(int(at))) for at in np.flatnonzero(~kept)]
    return _without(batch, kept, dead), pl.Series([t for t in texts if t is not None], dtype=pl.String)


def _with_values(batch: Batch, values: pl.Series) -> Batch:
    kept = values.is_not_null().to_numpy()
    dead = [
        DeadLine("the expression for value gives null", batch.value(int(at))) for at in np.flatnonzero(~kept)
    ]
    batch = _without(batch, kept, dead)
    fresh = Batch.of([value.encode() for value in values.drop_nulls().to_list()])
    return replace(batch, data=fresh.data, starts=fresh.starts, lengths=fresh.lengths)


def _without(batch: Batch, kept: np.ndarray, dead: list[DeadLine]) -> Batch:
    left = batch.where(kept, "")
    return replace(left, dropped=batch.dropped, dead=[*batch.dead, *dead])


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None

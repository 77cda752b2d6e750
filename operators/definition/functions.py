"""A user's function over batches of rows, as a step of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import cloudpickle

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pa, pl
from .expression_text import type_text
from .function_text import function_text

Batches = Literal["polars", "arrow"]

_EXAMPLE = 'map_batches(score, {"user": pl.String, "score": pl.Float64})'


class WrongRows(StreamgaugeError, TypeError):
    """The user's function returned other rows than declared; no single row is to blame, so the run ends."""


@dataclass(frozen=True, eq=False)
class FunctionStep:
    """A function from frames to frames of the same height, with the columns of `schema`."""

    function: Callable[[Any], Any]
    schema: Mapping[str, Any]
    batches: Batches = "polars"
    verb = "map_batches"
    drops_rows = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes can't import a function defined in a script or inside another function.
        return _restored, (cloudpickle.dumps(self.function), dict(self.schema), self.batches)

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` for an invalid function or schema, `ValueError` for an unknown format."""
        if function_text(self.function) is None or isinstance(self.function, type):
            raise TypeError(
                f"map_batches: {self.function!r} is not a function; write {_EXAMPLE}, or name an object's "
                "method"
            )
        if not isinstance(self.schema, Mapping) or not self.schema:
            raise TypeError(
                f"map_batches: {self.schema!r} does not name the columns that {self.name} returns; write "
                f"{_EXAMPLE}"
            )
        for name, dtype in self.schema.items():
            if not isinstance(name, str) or not isinstance(dtype, (pl.DataType, type(pl.Int64))):
                raise TypeError(
                    f"map_batches: {name!r}: {dtype!r} is not a column and its Polars type; write {_EXAMPLE}"
                )
        if self.batches not in ("polars", "arrow"):
            raise ValueError(f'map_batches: batches must be "polars" or "arrow", got {self.batches!r}')

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Apply the function to `frame`; the columns in `carried` bypass it."""

        def run(rows: pl.DataFrame) -> pl.DataFrame:
            return (
                self.called(rows.drop(carried)).hstack(rows.select(carried)) if carried else self.called(rows)
            )

        beside = frame.collect_schema() if carried else {}
        schema = pl.Schema({**self.schema, **{name: beside[name] for name in carried}})
        # The function sees all columns and all rows, even if later steps don't need them.
        return frame.map_batches(run, predicate_pushdown=False, projection_pushdown=False, schema=schema)

    def called(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Call the function on a frame. Raises `WrongRows`, and whatever the function raises."""
        schema = pl.Schema(self.schema)
        if not rows.height:
            return schema.to_frame()
        result: Any
        if self.batches == "arrow":
            oldest = pl.CompatLevel.oldest()
            result = self.function(rows.rechunk().to_arrow(compat_level=oldest).to_batches()[0])
            if isinstance(result, (pa.RecordBatch, pa.Table)):
                result = pl.from_arrow(result)
        else:
            result = self.function(rows)
        if not isinstance(result, pl.DataFrame):
            wanted = "pl.DataFrame" if self.batches == "polars" else "pa.RecordBatch"
            raise WrongRows(f"map_batches: {self.name} returned a {type(result).__name__}, not a {wanted}")
        if result.height != rows.height:
            raise WrongRows(
                f"map_batches: {self.name} returned {result.height} rows for {rows.height}; it must return "
                "one row for each, in their order; to drop rows, filter afterwards; to multiply rows, "
                "return a list and explode it"
            )
        return self._in_schema(result, schema)

    def _in_schema(self, frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
        if missing := [name for name in schema if name not in frame.columns]:
            raise WrongRows(
                f"map_batches: {self.name} returned no column {missing[0]!r}, only {', '.join(frame.columns)}"
            )
        for name, dtype in schema.items():
            given = frame[name]
            if given.dtype != dtype and given.null_count() < frame.height:
                raise WrongRows(
                    f"map_batches: {self.name} returned {name!r} as {given.dtype}, but its schema says "
                    f"{dtype}"
                )
        return frame.select(frame[name].cast(dtype) for name, dtype in schema.items())

    @property
    def name(self) -> str:
        """The function's name in errors."""
        return (function_text(self.function) or "").partition(" #")[0]

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the function by name and digest, the columns that it returns."""
        columns = ", ".join(f'"{name}": {type_text(dtype)}' for name, dtype in self.schema.items())
        batches = [] if self.batches == "polars" else [f'batches="{self.batches}"']
        return [self.verb, function_text(self.function), f"{{{columns}}}", *batches]


def is_wrong_rows(error: BaseException) -> bool:
    """Whether an error is `WrongRows`; Polars before 2 preserves only its name and text."""
    return isinstance(error, WrongRows) or (
        isinstance(error, pl.exceptions.ComputeError) and f"{WrongRows.__name__}: map_batches: " in str(error)
    )


def _restored(pickled: bytes, schema: Mapping[str, Any], batches: Batches) -> FunctionStep:
    return FunctionStep(cloudpickle.loads(pickled), schema, batches)

"""The definition of a stream: what is read, how rows are transformed, what is kept of them.

A `Stream` is a value: every method gives a new one, it pickles, and it knows no engine. Engines take it as
their argument: `operators.consumer.runner` runs it straight off Kafka, `spark_udafs.run` on Spark, with the
same expressions, the same sketches and the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from .aggregate import Aggregate
from .checked import check_keys, typed_aggregates
from .description import VERSION, fingerprint_of, written_by
from .durations import written
from .merged import MergedSource
from .text import expression_text, type_text
from .windowing import WindowedStream


@dataclass(frozen=True, eq=False)
class Stream(WindowedStream):
    """A stream's definition.

    Every method gives the type it was called on, so that a subclass stays one.

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count, distinct
    >>> stream = (
    ...     Stream.from_batches({"user": pl.String, "at": pl.Datetime("us"), "lang": pl.String}, time="at")
    ...     .filter(pl.col("lang") == "en")
    ...     .group_by("lang")
    ...     .tumbling("1m", delay="10s")
    ...     .agg(posts=count(), users=distinct("user"))
    ... )
    >>> stream.keys, list(stream.aggregates)
    (('lang',), ['posts', 'users'])
    """

    keys: tuple[str, ...] = ()
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)

    def group_by(self, *keys: str) -> Self:
        """Keep separate sketches for each combination of these columns' values.

        Raises `TypeError` for keys that aren't names, or are lists or structs, and `ValueError` for columns
        that don't exist or are named twice, for a second `group_by`, and after `agg`.
        """
        if wrong := [key for key in keys if not isinstance(key, str)]:
            raise TypeError(f'group_by: {wrong[0]!r} is not a name; write .group_by("country", "language")')
        if self.keys:
            both = ", ".join(f'"{key}"' for key in dict.fromkeys([*self.keys, *keys]))
            raise ValueError(
                f"group_by: the stream is grouped by {_names(self.keys)} already; "
                f"name all keys in one call, such as .group_by({both})"
            )
        if self.aggregates:
            raise ValueError(
                "group_by: the aggregates are chosen already; write .group_by(...) before .agg(...)"
            )
        check_keys("group_by", keys, self.columns)
        return replace(self, keys=keys)

    def agg(self, *unnamed: Aggregate, **aggregates: Aggregate) -> Self:
        """What to keep of each window and group, by the name of its column in the table.

        Raises `TypeError` for anything but named aggregates, and for columns of types that an aggregate can't
        take; `ValueError` for columns that don't exist, names that are taken, and without windows.
        """
        if unnamed:
            raise TypeError("agg: name each aggregate's column, such as posts=count()")
        if self.window is None:
            raise ValueError('agg: a stream needs windows first, such as .tumbling("1m")')
        if self.aggregates:
            raise ValueError(
                f"agg: the stream asks for {_names(self.aggregates)} already; name all in one .agg(...)"
            )
        return replace(self, aggregates=typed_aggregates(aggregates, self.keys, self.arrow_types()))

    def definition(self) -> dict[str, Any]:
        """Everything that decides the result, as plain JSON, without where it runs and how it connects."""
        types = self.columns
        source = self.source
        parts = {"parts": [p.definition() for p in source.parts]} if isinstance(source, MergedSource) else {}
        return {
            "version": VERSION,
            "written_by": written_by(),
            "source": self.source.definition(),
            "time": None if self.time is None else expression_text(self.time.meta.undo_aliases()),
            "steps": [step.definition() for step in self.steps],
            "keys": [[key, type_text(types[key])] for key in self.keys],
            "window": None if self.window is None else self.window.definition(),
            "delay": written(self.delay_us),
            "max_ahead": self.max_ahead_us,
            "aggregates": {name: asked.definition() for name, asked in self.aggregates.items()},
            **parts,
        }

    def fingerprint(self) -> str:
        """16 hexadecimal digits that differ for definitions whose state can't be merged (`description`)."""
        return fingerprint_of(self.definition())

    def complete(self) -> Self:
        """The stream itself. Raises `ValueError` if it has no aggregates yet and can't be run."""
        if not self.aggregates or self.window is None:
            raise ValueError('the stream asks nothing yet; end it with .tumbling("1m").agg(posts=count())')
        return self

    def _check_rows(self, verb: str, bare: bool = False) -> None:
        super()._check_rows(verb, bare)
        if self.keys or self.aggregates:
            raise ValueError(f"{verb}: transform the rows before group_by and agg")


def _names(columns: Iterable[str]) -> str:
    return ", ".join(columns) or "no columns"

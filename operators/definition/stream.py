"""The definition of a stream: what is read, how rows are transformed, what is kept of them.

A `Stream` is a value: every method gives a new one, it pickles, and it knows no engine. Engines take it as
their argument: `operators.consumer.runner` runs it straight off Kafka, `spark_udafs.run` on Spark, with the
same expressions, the same sketches and the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import polars as pl

from ..formats.decode import Decoder
from ..formats.message_columns import message_columns
from ..kafka.settings import check_settings, servers
from .aggregate import Aggregate
from .checked import check_keys, typed_aggregates
from .description import VERSION, fingerprint_of, written_by
from .durations import Duration, microseconds, written
from .event_time import TIME, event_time, first_line
from .sources import FrameSource, KafkaSource
from .steps import Step
from .text import expression_text, type_text
from .windows import Tumbling, Window

_EXAMPLE = '"user": pl.String'


@dataclass(frozen=True, eq=False)
class Stream:
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

    source: KafkaSource | FrameSource
    time: pl.Expr | None = None
    steps: tuple[Step, ...] = ()
    keys: tuple[str, ...] = ()
    window: Window | None = None
    delay_us: int = 10_000_000
    max_ahead_us: int = 3_600_000_000
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)

    @classmethod
    def from_kafka(
        cls,
        topic: str,
        *,
        value: Decoder,
        time: str | pl.Expr | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        config: Mapping[str, Any] | None = None,
        message: Sequence[str] | Mapping[str, str] = (),
        corrupt: Literal["stop", "skip"] = "stop",
    ) -> Self:
        """A stream of the messages of `topic`, decoded by `value`, such as ``json({"user": pl.String})``.

        `time` is the column, or an expression over the decoded columns, that holds the event time; without
        it the messages' own timestamps are taken. Text is read as ISO 8601, in UTC unless it names an
        offset; for numbers name the unit, as in ``time=pl.from_epoch("at", time_unit="ms")``.

        `message` asks for columns of what comes with the value: ``["key", "offset"]``, or under names of
        your own, ``{"user": "key", "trace": "header:trace-id"}``. There are ``key`` (text; ``key_bytes`` for
        its bytes), ``partition``, ``offset``, ``timestamp``, ``header:NAME`` (the text of the last header of
        that name) and ``headers``, all of them as a list.

        If a broker holds bytes that are no longer messages (a wrong checksum, an impossible length), a run
        ends with an error that names the partition and the offset. With ``corrupt="skip"`` it goes on
        behind them, and each of their offsets counts as a dead letter.

        `bootstrap_servers` is ``"host:port"``, several with commas between or as a list; `config` holds
        further librdkafka settings. Raises `TypeError` for a time that is not a column or not a time, and
        `ValueError` for a setting that librdkafka doesn't know.
        """
        if not isinstance(topic, str) or not topic:
            raise TypeError(f"the topic is {topic!r}; name one topic, as a string")
        if not hasattr(value, "decode") or not hasattr(value, "schema"):
            raise TypeError(
                f"value is {value!r}, not a decoder; write one such as value=json({{{_EXAMPLE}}})"
            )
        if not isinstance(config, Mapping | None):
            raise TypeError(f'config is {config!r}; write it as {{"security.protocol": "SSL"}}')
        check_settings(config or {})
        beside = message_columns(message, value.schema)
        if corrupt not in ("stop", "skip"):
            raise ValueError(f'corrupt is {corrupt!r}; it may be "stop" or "skip"')
        source = KafkaSource(topic, value, servers(bootstrap_servers), dict(config or {}), beside, corrupt)
        return cls(source, _time(time, source.schema))

    @classmethod
    def from_batches(cls, schema: Mapping[str, Any], *, time: str | pl.Expr) -> Self:
        """A stream of rows that the caller brings as Polars frames of this schema.

        Raises `TypeError` for a time that is not a column or not a time.
        """
        found = pl.Schema(schema)
        return cls(FrameSource(found), _time(time, found))

    def filter(self, *predicates: pl.Expr) -> Self:
        """Keep the rows for which all predicates hold.

        Raises `TypeError` for anything but expressions, and `ValueError` for columns that don't exist, for
        expressions that look at other rows, and after `group_by` or `agg`. So do `with_columns` and `select`.
        """
        return self._with(Step("filter", predicates))

    def with_columns(self, *columns: pl.Expr, **named: pl.Expr) -> Self:
        """Add columns, or replace them. Raises `TypeError` and `ValueError` as `filter` does."""
        return self._with(Step("with_columns", _expressions(columns, named)))

    def select(self, *columns: str | pl.Expr, **named: pl.Expr) -> Self:
        """Keep only these columns. Raises `TypeError` and `ValueError` as `filter` does."""
        return self._with(Step("select", _expressions(columns, named)))

    def explode(self, *columns: str) -> Self:
        """Make a row for each element of a list column; an empty list leaves one row with a null.

        Raises `TypeError` for a column that isn't a list, and `ValueError` for one that doesn't exist.
        """
        for name in columns:
            if not isinstance(name, str):
                raise TypeError(f'explode: {name!r} is not a column\'s name; write .explode("tags")')
            if name in self.columns and not isinstance(self.columns[name], (pl.List, pl.Array)):
                raise TypeError(f"explode: {name!r} is of type {self.columns[name]}, not a list")
        return self._with(Step("explode", _expressions(columns, {})))

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

    def tumbling(self, every: str, *, delay: Duration = "10s", max_ahead: Duration | None = "1h") -> Self:
        """Windows of length `every`, side by side.

        A window is given out once all partitions are `delay` past its end. A row is late, and left out, if
        its partition was that far before it, or if its window was given out for good. When partitions are
        silent for a run's `idle_seconds`, windows that have rows close without them; those that are still
        silent when the stream wakes are waited for as long. A partition with unread messages, or messages
        behind an open transaction, is not silent.

        A window that only the silence of all partitions has closed is given out and kept: rows that follow
        for it count, and if there are any it is given out again, whole, when it closes next. It is final once
        rows are `delay` past its end, or after another hour of silence. On Spark it is final when it is given
        out.

        A row with an event time more than `max_ahead` past the wall clock, or past its message's timestamp,
        is a dead letter and does not move time. In a recording, a row that far past those before it counts,
        but time jumps only once 20 rows in a row lie there. With None every time is believed.

        Raises `ValueError` for text that isn't a duration, and if the stream has windows already.
        """
        if self.window is not None:
            asked = f'"{every}"' if isinstance(every, str) else repr(every)
            raise ValueError(
                f"tumbling: the stream has windows of {written(self.window.pane_us)} already; there is "
                f"one kind for each table. For {asked}, define a second stream or roll up this one's table"
            )
        ahead = -1 if max_ahead is None else microseconds(max_ahead)
        return replace(self, window=Tumbling.every(every), delay_us=microseconds(delay), max_ahead_us=ahead)

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

    @property
    def kafka_source(self) -> KafkaSource:
        """The topic it reads. Raises `TypeError` if its rows come from frames, which no engine reads."""
        if not isinstance(self.source, KafkaSource):
            raise TypeError("this stream's rows come from frames; only Stream.from_kafka(...) can be run")
        return self.source

    @property
    def columns(self) -> pl.Schema:
        """The columns of a row after all steps."""
        return self.transform(pl.LazyFrame(schema=self.source.schema)).collect_schema()

    def arrow_types(self) -> dict[str, Any]:
        """The Arrow types of `columns`."""
        return {field.name: field.type for field in self.columns.to_frame().to_arrow().schema}

    def transform(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Apply all steps to a frame; `carried` names columns that selections must not drop."""
        for step in self.steps:
            frame = step.apply(frame, carried)
        return frame

    @property
    def drops_rows(self) -> bool:
        """Whether a row may become no row, or several."""
        return any(step.drops_rows for step in self.steps)

    def definition(self) -> dict[str, Any]:
        """Everything that decides the result, as plain JSON, without where it runs and how it connects."""
        types = self.columns
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
        }

    def fingerprint(self) -> str:
        """16 hexadecimal digits that differ for definitions whose state can't be merged (`description`)."""
        return fingerprint_of(self.definition())

    def complete(self) -> Self:
        """The stream itself. Raises `ValueError` if it has no aggregates yet and can't be run."""
        if not self.aggregates or self.window is None:
            raise ValueError('the stream asks nothing yet; end it with .tumbling("1m").agg(posts=count())')
        return self

    def _with(self, step: Step) -> Self:
        for expression in step.expressions:
            if not isinstance(expression, pl.Expr):
                hint = 'pl.col("lang") == "en"' if step.verb == "filter" else 'pl.col("price") * 2'
                raise TypeError(f"{step.verb}: {expression!r} is not an expression; write one such as {hint}")
        if self.keys or self.aggregates:
            raise ValueError(f"{step.verb}: transform the rows before group_by and agg")
        step.check(self.columns)
        after = replace(self, steps=(*self.steps, step))
        try:
            columns = after.columns
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{step.verb}: {first_line(error)}") from None
        if TIME in columns:
            raise ValueError(f"{step.verb}: {TIME!r} is a name the stream itself uses; choose another")
        return after


def _time(time: str | pl.Expr | None, schema: pl.Schema) -> pl.Expr | None:
    return None if time is None else event_time(time, schema)


def _expressions(columns: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[pl.Expr, ...]:
    plain = tuple(pl.col(column) if isinstance(column, str) else column for column in columns)
    return plain + tuple(
        (value if isinstance(value, pl.Expr) else pl.lit(value)).alias(name) for name, value in named.items()
    )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(columns) or "no columns"

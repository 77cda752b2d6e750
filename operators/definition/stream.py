"""The definition of a stream: what to read, how to transform rows, what to count.

A `Stream` is a value: every method returns a new one, it can be pickled, and it is independent of engines.
Engines accept it as an argument: `operators.consumer.runner` runs it straight off Kafka,
`spark_udafs.streaming.run` on Spark, with the same expressions, the same sketches and the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from ..formats.encode import Encoder, as_json
from ..windows.all_time import WholeInput
from ..windows.durations import Duration, duration_text, microseconds
from ..windows.tumbling import NoWindows
from ..windows.window import StreamWindows
from .aggregate import Aggregate
from .description import VERSION, fingerprint_of, written_by
from .expression_text import expression_text, type_text
from .forwarding import Forwarding
from .merged import MergedSource
from .sources import FrameSource, KafkaSource
from .topic_patterns import matches
from .validation import check_keys, typed_aggregates
from .windowed_stream import WindowedStream


@dataclass(frozen=True, eq=False)
class Stream(WindowedStream):
    """A stream's definition.

    Every method returns the type that it was called on, so a subclass is preserved.

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count, distinct
    >>> stream = (
    ...     Stream.from_schema({"user": pl.String, "at": pl.Datetime("us"), "lang": pl.String}, time="at")
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
    sending: Forwarding | None = None
    compared: Mapping[str, str] = field(default_factory=dict)
    """Further parts of the definition by name, such as the HAVING of an SQL query. The fingerprint excludes
    them, because merging windows doesn't need them."""
    began_as: str = ""
    """The fingerprint under which a group began, if its state continues under another definition."""

    def group_by(self, *keys: str) -> Self:
        """Keep separate sketches for each combination of these columns' values.

        Raises `TypeError` for keys that aren't names, or are lists or structs, and `ValueError` for columns
        that don't exist or are named twice, for a second `group_by`, and after `agg`.
        """
        self._check_open("group_by")
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
        """Set the aggregates of each window and group, by the name of their column in the table.

        Raises `TypeError` for anything but named aggregates, and for columns of types that an aggregate
        doesn't accept; `ValueError` for columns that don't exist, names already used, and without windows.
        """
        self._check_open("agg")
        if unnamed:
            raise TypeError("agg: name each aggregate's column, such as posts=count()")
        window = self.window
        if window is None and isinstance(self.source, FrameSource):
            window = WholeInput()
        if window is None:
            raise ValueError('agg: a stream needs windows first, such as .tumbling("1m")')
        if self.aggregates:
            raise ValueError(
                f"agg: the stream has {_names(self.aggregates)} already; name all in one .agg(...)"
            )
        if reserved := window.added_keys.keys() & {*self.keys, *aggregates}:
            raise ValueError(
                f'agg: "{min(reserved)}" is the key that tells windows by {window.kind} apart; give '
                "your own column another name"
            )
        if unknown := [name for name in window.by or () if name not in self.keys]:
            raise ValueError(
                f"session: by= must name keys of the stream, got {unknown[0]!r}; its keys are "
                f"{_names(self.keys) if self.keys else 'none'}"
            )
        typed = typed_aggregates(aggregates, self.keys, self.reading.arrow_types())
        return replace(self, aggregates=typed, window=window)

    def rows_to_kafka(
        self,
        topic: str,
        *,
        key: str | Sequence[str] = (),
        value: Encoder | None = None,
        delay: Duration = "1m",
        max_ahead: Duration | None = "1h",
    ) -> Self:
        """Send the rows to a topic, one message each, instead of sketching them; this ends the stream.

        `key` names the column or columns of the message key: the text of a single column, or a JSON array of
        several. Messages with the same key go to the same partition, chosen as Java's clients do. Without a
        key, all rows of an input partition go to one partition. Either way they stay in the order in which
        they were read. `value` encodes the rest: `as_json` by default, `as_avro`, `as_bytes`, or your own
        encoder. Each message has the header ``source`` with the ``topic/partition/offset`` of its original
        message; rows of two joined streams have none. The topic is created if missing, with as many
        partitions as the largest input topic, on the brokers that the stream reads from.

        With ``delivery="exactly_once"`` rows, account and positions are one transaction, and readers with
        ``isolation.level=read_committed`` see each row once. With ``"at_least_once"`` rows may be repeated
        after a crash, with the same ``source``; with ``"at_most_once"`` rows may be lost, but none is
        repeated. ``"effectively_once"`` is refused: it drops duplicates when they are merged, but any
        consumer may read a topic of rows. A message whose rows are sent is counted. A message with a row that
        can't be encoded is a dead letter; a row that exceeds the topic's limit ends the run.

        Event time only matters after `deduplicate` or a join of two streams. There, a row is late when its
        partition is more than `delay` past it; `max_ahead` is as for `tumbling`.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> orders = sg.Stream.from_kafka("orders", value=sg.json({"user": pl.String, "n": pl.Int64}))
        >>> good, bad = orders.branch(pl.col("n") > 0)
        >>> tester = sg.StreamTester(good.rows_to_kafka("good", key="user"))
        >>> tester.feed([{"user": "ann", "n": 2}, {"user": "bob", "n": -1}])
        Account(read=2, counted=1, filtered=1, late=0, dead_lettered=0)
        >>> (sent,) = tester.sent()
        >>> sent.key, sent.value
        (b'ann', b'{"user":"ann","n":2}')

        Raises `ValueError` for an invalid topic name, for columns that don't exist, after `group_by` and
        windows, and for a topic that the stream reads; `TypeError` for a value that isn't an encoder.
        """
        if self.keys:
            raise ValueError("rows_to_kafka: rows are sent one by one; write key= in place of group_by")
        self._check_rows("rows_to_kafka", bare=True)
        named = (key,) if isinstance(key, str) else tuple(key)
        sending = Forwarding(topic, named, as_json() if value is None else value)
        sending.check(self.columns)
        for part in self.reading.parts():
            if isinstance(part.source, KafkaSource) and matches(part.source.topics, topic):
                raise ValueError(f"rows_to_kafka: the stream reads {topic!r}; send its rows to another topic")
        ahead = -1 if max_ahead is None else microseconds(max_ahead)
        return replace(
            self, sending=sending, window=NoWindows(), delay_us=microseconds(delay), max_ahead_us=ahead
        )

    def definition(self) -> dict[str, Any]:
        """Everything that determines the result, as plain JSON, without engine and connection."""
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
            "delay": duration_text(self.delay_us),
            "max_ahead": self.max_ahead_us,
            **({"keep_late": True} if self.keep_late else {}),
            "aggregates": {name: aggregate.definition() for name, aggregate in self.aggregates.items()},
            **parts,
            **({} if self.sending is None else {"to": self.sending.definition()}),
            **self.compared,
        }

    def fingerprint(self) -> str:
        """16 hexadecimal digits that differ for definitions whose state can't be merged (`description`)."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return self.began_as or fingerprint_of(self.definition())

    def complete(self) -> Self:
        """Return the stream itself. Raises `ValueError` if it has no aggregates yet and can't be run."""
        if self.sending is None and (not self.aggregates or self.window is None):
            raise ValueError(
                'the stream has no aggregates yet; add .tumbling("1m").agg(posts=count()), or send its '
                'rows with .rows_to_kafka("topic")'
            )
        return self

    def _check_rows(self, verb: str, bare: bool = False) -> None:
        self._check_open(verb)
        super()._check_rows(verb, bare)
        if self.keys or self.aggregates:
            raise ValueError(f"{verb}: transform the rows before group_by and agg")

    def _windowed(
        self, verb: str, window: StreamWindows, delay: Duration, max_ahead: Duration | None
    ) -> Self:
        self._check_open(verb)
        return super()._windowed(verb, window, delay, max_ahead)

    def _check_open(self, verb: str) -> None:
        """Raise `ValueError` if the rows are already forwarded to a topic."""
        if self.sending is not None:
            raise ValueError(
                f"{verb}: the rows are sent to {self.sending.topic!r}, which ends a stream; write "
                f".{verb}(...) before .rows_to_kafka(...), or use the stream before it"
            )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(columns) or "no columns"

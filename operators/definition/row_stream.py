"""The rows of a source and the steps that transform them: a stream's definition before groups and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

from ...sketches.core.lazy import pl
from ..formats.decode import Decoder
from ..formats.message_columns import message_columns
from ..formats.tombstones import Tombstones
from ..kafka.settings import check_settings, servers
from ..windows.durations import Duration, microseconds
from .decoders import decoded_columns
from .deduplication import MANY, Deduplicate
from .event_time import TIME, event_time, first_line
from .filling import FillForward
from .functions import Batches, FunctionStep
from .input import StreamInput
from .joining import MOST_ROWS, Between, joined_source
from .merged import MergedSource, Part, differing_columns, merged
from .sources import FrameSource, KafkaSource
from .steps import RowStep, Step
from .tables import How, LookupTable, TableJoin
from .topic_patterns import topic_names


@dataclass(frozen=True, eq=False)
class RowStream(StreamInput):
    """Rows, with the methods that define their source and their transformation."""

    @classmethod
    def from_kafka(
        cls,
        topic: str | Sequence[str],
        *,
        value: Decoder,
        time: str | pl.Expr | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        config: Mapping[str, Any] | None = None,
        message: Sequence[str] | Mapping[str, str] = (),
        corrupt: Literal["stop", "skip"] = "stop",
        key: Decoder | None = None,
        tombstones: Tombstones = "refuse",
    ) -> Self:
        """A stream of the messages of `topic`, decoded by `value`, for example ``json({"user": pl.String})``.

        There may be several: ``["orders", "refunds"]``, or a pattern, ``"^metrics\\\\."``, with the ``^``
        that librdkafka requires. Topics that begin to match during a run are picked up within seconds, or
        within ``topic.metadata.refresh.interval.ms`` if `config` sets it; if a topic is deleted, the run ends
        with an error, and the next run continues without it. A pattern never matches dead-letter topics or
        table topics.

        `time` is the column, or an expression over the decoded columns, with the event time; without it the
        messages' own timestamps are used. Text is parsed as ISO 8601, in UTC unless it has an offset; for
        numbers give the unit, as in ``time=pl.from_epoch("at", time_unit="ms")``.

        `message` adds columns of message metadata: ``["key", "offset"]``, or under your own names,
        ``{"user": "key", "trace": "header:trace-id"}``. Available are ``key`` (text; ``key_bytes`` for its
        bytes), ``partition``, ``offset``, ``timestamp``, ``timestamp_type`` (``create`` or ``append``),
        ``header:NAME`` (the text of the last header of that name) and ``headers``, all of them as a list.
        `key` is a decoder of keys, such as ``key=json({"id": pl.Int64})``, whose columns stand beside the
        value's; they are null if a message has no key.

        Messages without a value, which delete their key in a compacted topic, are dead letters, whatever the
        format; with ``tombstones="skip"`` they count as filtered, and with ``tombstones="keep"`` each is a
        row whose value columns are null.

        If a broker stores damaged bytes (a wrong checksum, an impossible length), a run ends with an error
        that names the partition and the offset. With ``corrupt="skip"`` it continues after them, and each of
        their offsets counts as a dead letter.

        `bootstrap_servers` is ``"host:port"``, or several separated by commas or in a list; `config` has
        further librdkafka settings. Raises `TypeError` for a time that is not a column or not a time, and
        `ValueError` for a setting that librdkafka doesn't know.
        """
        topics = topic_names(topic)
        if not isinstance(config, Mapping | None):
            raise TypeError(
                'config must be a dict of Kafka settings, such as {"security.protocol": "SSL"}, got '
                f"{config!r}"
            )
        check_settings(config or {})
        decoded = decoded_columns(value, key)
        beside = message_columns(message, decoded)
        if corrupt not in ("stop", "skip"):
            raise ValueError(f'corrupt must be "stop" or "skip", got {corrupt!r}')
        if tombstones not in ("refuse", "skip", "keep"):
            raise ValueError(f'tombstones must be "refuse", "skip" or "keep", got {tombstones!r}')
        at, settings = servers(bootstrap_servers), dict(config or {})
        source = KafkaSource(topics, value, at, settings, beside, corrupt, key, tombstones)
        return cls(source, _time(time, source.schema))

    @classmethod
    def from_archive(
        cls,
        place: str,
        topic: str | Sequence[str] | None = None,
        *,
        value: Decoder,
        time: str | pl.Expr | None = None,
        message: Sequence[str] | Mapping[str, str] = (),
        key: Decoder | None = None,
        tombstones: Tombstones = "refuse",
    ) -> Self:
        """A stream of an archived topic's messages, read from files in place of brokers.

        `place` is the folder or URL passed to `streamgauge archive --output`; the folder of one topic,
        ``"archive/topic=posts"``, needs no `topic`. Everything else is as for `from_kafka`, so the definition
        is the same as the live stream's. Nothing is read before `run`, which ends at the end of the archive,
        or ``on_spark(spark, streaming=False)``; `over_archive` describes their results.

        Raises what `from_kafka` raises, and `TypeError` without a topic.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> posts = sg.Stream.from_archive("archive", "posts", value=sg.json({"user": pl.String}))
        >>> posts.tumbling("1h").agg(users=sg.distinct("user")).reading.reads_archive
        True
        """
        if topic is None:
            topic = place.rstrip("/").rpartition("topic=")[2] if "topic=" in place else None
            place = place.rpartition("topic=")[0].rstrip("/") or "." if topic else place
            if topic is None:
                raise TypeError(
                    'from_archive: name the topic, as in from_archive("archive", "posts", value=...)'
                )
        stream = cls.from_kafka(
            topic, value=value, time=time, message=message, key=key, tombstones=tombstones
        )
        return stream.over_archive(place)

    @classmethod
    def from_schema(cls, schema: Mapping[str, Any], *, time: str | pl.Expr | None = None) -> Self:
        """A stream of rows that the caller supplies as Polars frames with this schema.

        Without a `time` there are no windows: `agg` gives one row for each group. Raises `TypeError` for a
        time that is not a column or not a time.
        """
        types = pl.Schema(schema)
        return cls(FrameSource(types), _time(time, types))

    def filter(self, *predicates: pl.Expr) -> Self:
        """Keep the rows for which all predicates hold.

        Raises `TypeError` for anything but expressions, and `ValueError` for columns that don't exist, for
        expressions that use other rows, and after `group_by` or `agg`. So do `with_columns` and `select`.
        """
        return self._with(Step("filter", predicates))

    def with_columns(self, *columns: pl.Expr, **named: pl.Expr) -> Self:
        """Add columns, or replace them.

        A string names a column, as in Polars; write ``pl.lit("a")`` for the string itself. Raises `TypeError`
        and `ValueError` as `filter` does.
        """
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

    def map_batches(
        self, function: Callable[[Any], Any], schema: Mapping[str, Any], *, batches: Batches = "polars"
    ) -> Self:
        """Apply your own function to batches of rows; `schema` lists the columns of its result.

        The function gets a `polars.DataFrame` with all columns, or a `pyarrow.RecordBatch` with
        ``batches="arrow"``, and returns one of the same height: one row for each input row, in the same
        order, with at least the columns of `schema`. The rows have these columns from here on. To drop rows,
        filter after it; to multiply them, return lists and explode them.

        **It must treat each row independently**: the division into batches is not defined, and differs after
        a restart. If it raises, the rows that cause it become dead letters. If it returns a different number
        of rows, or different columns or types than declared, the run ends with an error that names it. Its
        name and code are part of the stream's definition.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> def score(rows: pl.DataFrame) -> pl.DataFrame:
        ...     return rows.select("at", score=rows["text"].str.len_chars().cast(pl.Float64))
        >>> posts = sg.Stream.from_schema({"text": pl.String, "at": pl.String}, time="at")
        >>> scored = posts.map_batches(score, {"score": pl.Float64}).filter(pl.col("score") > 2)
        >>> tester = sg.StreamTester(scored.tumbling("1m").agg(posts=sg.count()))
        >>> tester.feed([{"text": text, "at": "2026-01-01T00:00:01"} for text in ("a", "abc")])
        Account(read=2, counted=1, filtered=1, late=0, dead_lettered=0)

        Raises `TypeError` for anything but a function, or for a schema that does not map columns to Polars
        types, and `ValueError` for any other `batches`, and after `group_by` or `agg`.
        """
        return self._then(FunctionStep(function, schema, batches))

    def deduplicate(
        self,
        *ids: str,
        within: Duration | None = None,
        last: int | None = None,
        limit: int = MANY,
        fpp: float | None = None,
        capacity: int | None = None,
    ) -> Self:
        """Keep a row only if no earlier row has the same id, less than `within` away in event time.

        Use it for a producer's retries and repeated deliveries: the first row counts and the others are
        filtered, in either order of their event times. Filtered rows count as earlier rows as well, so an id
        that keeps recurring more often than once in `within` counts once. The id is a column, or several
        together; rows with a null in one are kept.

        It works within each partition: it finds duplicates that a producer's key, or its retries, put into
        one partition; the same id in two partitions counts twice. It is exact for rows that are not late: an
        id is stored, in about 100 bytes, until all rows within its reach would be late. That takes `within`,
        the delay and a window's length of event time; an id from a clock that is ahead is stored for that
        much longer. If a partition has more than `limit` ids within reach, the run ends with an error: give
        the topic more partitions, choose a shorter `within`, or raise the limit, which is not part of the
        definition.

        With `last` instead of `within`, a row is compared with the last `last` messages of its partition,
        whatever their times: then windows of days take no more memory than windows of seconds.

        With `fpp` and `capacity` memory is fixed, and ids are stored as in `SlidingBloom`: in 19 bytes for
        each of `capacity` at 0.1 %, 12 at 1 %, times the number of intervals of two `within` that `within`,
        the delay and a window together touch. That number is two for short windows, and five for windows of
        an hour and a `within` of ten minutes. Every duplicate is still dropped. While a partition has up to
        `capacity` ids in `within`, any other row is dropped with probability `fpp` at most, and the account
        counts it as filtered, like a duplicate; a row whose id occurred up to 1/128 of `within` too long ago
        is dropped as well. If the partition has more ids, the run ends with an error rather than dropping
        more rows: increase `capacity`, which is not part of the definition. A row that is out of order is
        also compared with later rows of its id, however much later, so let `capacity` allow for the ids of
        that time, and use exact ids if ids are reused on purpose.

        A worker that is assigned a partition rereads those rows without counting them. Keep the topic's
        retention longer than that, or the run warns that ids may count twice. Event time is evaluated at this
        step: rows that a later step filters still move it.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> orders = sg.Stream.from_schema({"id": pl.Int64, "at": pl.String}, time="at")
        >>> once = orders.deduplicate("id", within="10m").tumbling("1h").agg(orders=sg.count())
        >>> rows = [{"id": 7, "at": f"2026-01-01T00:{minute}:00Z"} for minute in ("00", "09", "19")]
        >>> sg.StreamTester(once).feed(rows)
        Account(read=3, counted=2, filtered=1, late=0, dead_lettered=0)

        Raises `ValueError` unless exactly one of `within` and `last` is given, if it isn't a duration or a
        number up to the limit, for a limit below 1, for only one of `fpp` and `capacity`, for either of them
        out of range or together with `last` or `limit`, for columns that don't exist, for a second
        `deduplicate`, and after `group_by` or `agg`; `TypeError` for ids that aren't names of columns, or are
        lists or structs.
        """
        if self.reading.joined is not None:
            raise ValueError("deduplicate: the stream is joined with another, and pairs are never duplicates")
        if self.reading.looks_back:
            if self.reading.looking_back == "deduplicate":
                raise ValueError(
                    "deduplicate: the stream is deduplicated already; name all columns of the id in one call"
                )
            raise ValueError(
                f"deduplicate: the stream has {self.reading.looking_back}() already, "
                "and can look back only once"
            )
        within_us = None if within is None else microseconds(within)
        return self._then(Deduplicate(ids, within_us, limit, last, fpp, capacity))

    def fill_forward(self, column: str, *, by: str | Sequence[str], last: int = 10_000) -> Self:
        """Replace nulls in `column` by the previous value among rows with the same values in `by`.

        For example, log lines without an address get the address of their connection. It considers the last
        messages of the row's own partition, whatever their times. Rows with a null in `by` stay unchanged. A
        worker that is assigned a partition rereads those messages without counting them. Event time is
        evaluated at this step: rows that a later step filters still move it.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> lines = sg.Stream.from_schema({"pid": pl.Int64, "ip": pl.String, "at": pl.String}, time="at")
        >>> by_ip = lines.fill_forward("ip", by="pid").group_by("ip").tumbling("1m").agg(lines=sg.count())
        >>> tester, at = sg.StreamTester(by_ip), "2026-01-01T00:00:01Z"
        >>> _ = tester.feed([{"pid": pid, "ip": ip, "at": at} for pid, ip in [(1, "::1"), (2, None)]])
        >>> _ = tester.feed([{"pid": 1, "ip": None, "at": at}])
        >>> tester.finish().windows().select("ip", "lines").sort("ip").rows()
        [(None, 1), ('::1', 2)]

        Raises `TypeError` and `ValueError` for columns that aren't names or don't exist, for a number of
        messages below 1, for a stream that already looks back or is joined with another, and after `group_by`
        or `agg`.
        """
        if self.reading.joined is not None:
            raise ValueError(
                "fill_forward: the stream is joined with another; fill each side where it is written"
            )
        if self.reading.looks_back:
            raise ValueError(
                f"fill_forward: the stream has {self.reading.looking_back}() already, "
                "and can look back only once"
            )
        return self._then(FillForward(column, (by,) if isinstance(by, str) else tuple(by), last))

    def join(
        self,
        other: LookupTable | RowStream,
        *,
        on: str | Sequence[str],
        within: Duration | None = None,
        how: How | Between = "inner",
        suffix: str = "_right",
        limit: int | None = None,
        matched: str = "",
        as_of: str = "",
    ) -> Self:
        """Join each row with a table's row, or with another stream's rows.

        **A table**: the row whose key is in the column, or columns, `on`. With ``how="inner"`` rows whose key
        is not in the table are filtered; with ``"left"`` they stay, with nulls. A null is not a key. A column
        of the table whose name is already used gets the suffix. `matched` names an additional Boolean column
        that is true if the table has the key; without it, you can't tell a missing key from a row of nulls.

        A row is joined with the table as of the time of processing, not as of the row's event time: an update
        takes effect when it is read, a moment after it was written. A row that is reread after a crash may
        therefore see a newer table. Every worker process reads the whole table before it counts its first
        row, and holds it in memory. `LookupTable` has an example.

        If the table keeps versions, `as_of` names a column of times, and each row is joined with the version
        that was valid at that time, among the versions that have been read so far: a version that is written
        after the row was processed doesn't change its result. A row whose version is no longer held becomes a
        dead letter.

        **A stream**: all its rows with the same values in `on` whose event times are at most `within` before
        or after the row's, as with `JoinWindows` in Kafka Streams. Each such pair becomes a row with the
        later of the two event times and the columns of both; the columns in `on` occur once. It is emitted
        once, when the second of the two arrives. With ``how="left"``, unmatched rows are emitted as well,
        with nulls and their own event time; with ``"outer"``, unmatched rows of both sides. This happens as
        soon as every row that could be their partner would be late. A null is not a key, and never matches.

        Both topics must have the same number of partitions, and their messages must be keyed by `on` or
        something that it determines: rows are matched only between partitions with the same number. A run
        checks the number of partitions; it can't check the keys. Late rows and dead letters are never
        matched. The pairs of all other rows depend neither on which topic is read first nor on restarts. A
        message is filtered when it arrives, and counted once it is part of a row of the result.

        A stream may be joined with itself, or with another that begins with the same `from_kafka`. Each row
        is then read once and stands on both sides, so it is also paired with itself: filter those pairs by a
        column that differs. Its rows need no partner in another topic.

        Rows are buffered in memory until every possible partner would be late. That takes `within`, the delay
        and a window's length of event time in the *other* topic's partition, and longer while that partition
        is silent. If one side has more than `limit` rows buffered in a partition (5 million if None), the run
        ends with an error. A left or outer join holds windows open for that much longer. This includes the
        time in which rows wait for a silent partition, because only its rows show that no partner will
        arrive, and an emitted row can't be recalled. A warning names the partition, and the metric
        `join_rows_held_up` counts the rows; a message with a later event time and a null in `on` ends the
        wait, and so does the end of a bounded run (docs/streams.md). A worker that is assigned partitions
        rereads buffered rows: keep the retention of both topics longer than twice `within`, the delay and a
        window. Only ``delivery="exactly_once"`` commits the positions of both topics together, so a run
        accepts no other.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> at = pl.from_epoch("at")
        >>> ads = sg.Stream.from_kafka("ads", value=sg.json({"ad": pl.Int64, "at": pl.Int64}), time=at)
        >>> clicks = sg.Stream.from_kafka("clicks", value=sg.json({"ad": pl.Int64, "at": pl.Int64}), time=at)
        >>> clicked = ads.join(clicks, on="ad", within="10m").tumbling("1h").agg(clicks=sg.count())
        >>> tester = sg.StreamTester(clicked)
        >>> tester.feed([{"ad": ad, "at": 1_767_225_600} for ad in (1, 2)], topic="ads")
        Account(read=2, counted=0, filtered=2, late=0, dead_lettered=0)
        >>> tester.feed([{"ad": 2, "at": 1_767_225_630}], topic="clicks")
        Account(read=1, counted=2, filtered=-1, late=0, dead_lettered=0)

        Raises `TypeError` for anything but a table or a stream of a topic, and for columns of different
        types; `ValueError` for columns that don't exist, names that both sides use, an unknown `how`,
        `within` or `limit` for a table, streams that can't be joined, and after `group_by`, windows or `agg`.
        """
        named = tuple(on) if isinstance(on, (list, tuple)) else (on,)
        if isinstance(other, LookupTable):
            if within is not None:
                raise ValueError("join: within= is for a stream; a table has one row of each key at any time")
            if limit is not None:
                raise ValueError("join: limit= is for a stream, whose rows wait; all of a table is kept")
            if not isinstance(as_of, str):
                raise TypeError(f"join: as_of must name a column of times, got {as_of!r}")
            return self._then(TableJoin(other, named, cast(How, how), suffix, matched, as_of))
        if not isinstance(other, RowStream):
            raise TypeError(
                f"join: {other!r} is not a table, nor a stream; make one by LookupTable.from_kafka(...)"
            )
        if matched:
            raise ValueError(
                "join: matched= is for a table; for a stream, copy a column of the other stream before the "
                "join, and test the copy for null"
            )
        if as_of:
            raise ValueError("join: as_of= is for a table that keeps versions; use within= for a stream")
        if within is None:
            raise TypeError('join: set the largest distance between the rows of a pair, as in within="10m"')
        for stream in (self, other):
            stream._check_rows("join", bare=True)
            if stream.reading.joined is not None:
                raise ValueError(
                    f"join: the streams of {stream.reading.in_words()} are joined already, and a join has "
                    "two sides; write those pairs to a topic of their own, and join that"
                )
            if isinstance(stream.source, MergedSource):
                raise ValueError(
                    f"join: a stream reads {stream.reading.in_words()}; each side of a join reads one topic "
                    "by its name"
                )
        parts = [part for stream in (self, other) for part in stream.reading.parts()]
        sides = self.columns, other.columns
        most = MOST_ROWS if limit is None else limit
        source = joined_source(parts, sides, named, microseconds(within), cast(Between, how), suffix, most)
        return replace(self, source=source, time=None, steps=())

    def branch(self, *predicates: pl.Expr) -> tuple[Self, ...]:
        """Divide the rows: a stream for each predicate, and a last one for all other rows.

        A row goes to the first predicate that holds; null counts as false. The streams are ordinary ones:
        transform each, and run it by itself or `merge` them again.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"n": pl.Int64, "at": pl.String}, time="at")
        >>> small, even, others = rows.branch(pl.col("n") < 3, pl.col("n") % 2 == 0)
        >>> for stream in (small, even, others):
        ...     tester = sg.StreamTester(stream.tumbling("1m").agg(rows=sg.count()))
        ...     at = "2026-01-01T00:00:01"
        ...     print(tester.feed([{"n": n, "at": at} for n in (1, 2, 3, 4, None)]).counted)
        2
        1
        2

        Raises `TypeError` and `ValueError` as `filter` does.
        """
        if not predicates:
            raise TypeError('branch: no predicates are given; write one such as pl.col("lang") == "en"')
        _check_expressions("branch", predicates)
        holding = [predicate.fill_null(False) for predicate in predicates]
        none = [~predicate for predicate in holding]
        chosen = [self.filter(*none[:at], one) for at, one in enumerate(holding)]
        return (*chosen, self.filter(*none))

    def merge(self, *others: RowStream) -> Self:
        """Merge several streams into one: later steps, keys, windows and aggregates apply to all rows.

        Each stream has its own topics, decoder, event time and steps up to here; all must end with the same
        columns. A window closes when all their partitions are past it. Branches of one stream are merged
        without reading it twice.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> clicks = sg.Stream.from_kafka("clicks", value=sg.json({"user": pl.String}))
        >>> orders = sg.Stream.from_kafka("orders", value=sg.json({"buyer": pl.String}))
        >>> both = clicks.merge(orders.select(user=pl.col("buyer"))).group_by("user")
        >>> tester = sg.StreamTester(both.tumbling("1m").agg(n=sg.count()))
        >>> _ = tester.feed([{"user": "ann"}], topic="clicks")
        >>> _ = tester.feed([{"buyer": "ann"}], topic="orders")
        >>> tester.finish().windows()["n"].to_list()
        [2]

        Raises `TypeError` for anything but streams, and `ValueError` for streams with different columns, with
        the difference, for streams that can't be read together, and after `group_by` or windows.
        """
        streams: list[RowStream] = [self, *others]
        for stream in streams:
            if not isinstance(stream, RowStream):
                raise TypeError(f"merge: {stream!r} is not a stream; write a.merge(b, c)")
            stream._check_rows("merge", bare=True)
            if stream.reading.joined is not None:
                raise ValueError(
                    "merge: a stream is joined with another; only streams of topics can be merged"
                )
        columns = [stream.columns for stream in streams]
        for stream, own in zip(others, columns[1:]):
            if differences := differing_columns(columns[0], own, stream.reading.in_words("the other stream")):
                raise ValueError(
                    f"merge: the streams end in different columns: {'; '.join(differences)}. Make them alike "
                    "before they are merged, by select, with_columns or a cast"
                )
        parts = [part for stream in streams for part in stream.reading.parts()]
        whole = merged(parts, columns[0])
        if isinstance(whole, Part):
            return replace(self, source=whole.source, time=whole.time, steps=whole.steps)
        return replace(self, source=whole, time=None, steps=())

    def _with(self, step: Step) -> Self:
        _check_expressions(step.verb, step.expressions)
        return self._then(step)

    def _then(self, step: RowStep) -> Self:
        self._check_rows(step.verb)
        step.check(self.columns)
        after = replace(self, steps=(*self.steps, step))
        try:
            columns = after.columns
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{step.verb}: {first_line(error)}") from None
        if TIME in columns:
            raise ValueError(f"{step.verb}: {TIME!r} is a name the stream itself uses; choose another")
        return after

    def _check_rows(self, verb: str, bare: bool = False) -> None:
        """Raise `ValueError` if its rows can't be transformed any more, or, if `bare`, if it has windows."""


def _time(time: str | pl.Expr | None, schema: pl.Schema) -> pl.Expr | None:
    return None if time is None else event_time(time, schema)


def _check_expressions(verb: str, expressions: Sequence[Any]) -> None:
    for expression in expressions:
        if not isinstance(expression, pl.Expr):
            hint = 'pl.col("price") * 2' if verb in ("with_columns", "select") else 'pl.col("lang") == "en"'
            raise TypeError(f"{verb}: {expression!r} is not an expression; write one such as {hint}")


def _expressions(columns: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[pl.Expr, ...]:
    plain = tuple(pl.col(column) if isinstance(column, str) else column for column in columns)
    return plain + tuple(_expression(name, value).alias(name) for name, value in named.items())


def _expression(name: str, value: Any) -> pl.Expr:
    """The expression of a named column, from an expression, a column's name (as in Polars) or a constant."""
    if isinstance(value, str):
        return pl.col(value)
    try:
        return value if isinstance(value, pl.Expr) else pl.lit(value)
    except TypeError:
        raise TypeError(
            f'{name}: {value!r} is not an expression; write one such as pl.col("price") * 2, or apply '
            "your own function with .map_batches(...)"
        ) from None

"""A compacted topic as a table, and joining rows with it as a step of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, cast, get_args

from ...sketches.core.lazy import np, pl
from ..formats.decode import Decoder
from ..kafka.settings import check_settings, servers
from ..windows.durations import Duration, duration_text, microseconds
from .event_time import event_time
from .expression_text import expression_text, type_text
from .sources import KafkaSource

How = Literal["inner", "left"]

_EXAMPLE = 'LookupTable.from_kafka("users", value=json({"country": pl.String}))'


@dataclass(frozen=True, eq=False)
class LookupTable:
    """A topic read as a table: the row of a key is its latest message.

    It is usually a compacted topic, such as the changes of a database table. A stream joins it with
    `Stream.join`. Each worker reads it completely before it counts its first row, keeps it up to date, and
    holds it in memory: about the size of its values as columns, plus 50 bytes per key.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> users = sg.LookupTable.from_kafka("users", value=sg.json({"country": pl.String}))
    >>> posts = sg.Stream.from_schema({"author": pl.String, "at": pl.String}, time="at")
    >>> by_country = posts.join(users, on="author").group_by("country").tumbling("1m").agg(posts=sg.count())
    >>> tester = sg.StreamTester(by_country)
    >>> tester.feed_lookup("users", {"ann": {"country": "FI"}, "bob": {"country": "NO"}, "eve": None})
    >>> rows = [{"author": name, "at": "2026-01-01T00:00:01Z"} for name in ("ann", "bob", "ann", "eve")]
    >>> tester.feed(rows)
    Account(read=4, counted=3, filtered=1, late=0, dead_lettered=0)
    >>> dict(tester.finish().windows().select("country", "posts").rows())
    {'FI': 2, 'NO': 1}
    """

    source: KafkaSource
    key: Any = field(default_factory=lambda: pl.String)
    key_source: KafkaSource | None = None
    versions_us: int = 0
    time: pl.Expr | None = None

    @classmethod
    def from_kafka(
        cls,
        topic: str,
        *,
        value: Decoder,
        key: Any = None,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        config: Mapping[str, Any] | None = None,
        versions: Duration | None = None,
        time: str | pl.Expr | None = None,
    ) -> LookupTable:
        """The table of the latest messages of `topic`, their values decoded by `value`.

        `key` is the Polars type of the messages' keys: text by default, a whole number written as text
        (``pl.Int64``), or bytes (``pl.Binary``); or a decoder for them, such as ``json({"id": pl.Int64})``,
        whose columns together are the key. A message with a null value deletes its key. So does a message
        that can't be decoded, with a warning, because the key's current row is then unknown. Messages without
        a key, or with a key of another type, are skipped with a warning.

        With `versions`, such as ``"7d"``, earlier rows of a key are held as well, for ``join(…, as_of=)``: a
        row is valid from its `time`, a column of the value or an expression (the message's timestamp if
        None), until the next row of its key. A row that was replaced longer than `versions` before the newest
        time in the table may be dropped. A message that deletes a key does so from its timestamp on. Messages
        without a time are skipped with a warning.

        `bootstrap_servers` and `config` are as in `Stream.from_kafka`; the Kafka user needs READ on the
        topic. Raises `TypeError` for a missing topic name, a value that isn't a decoder, a `time` that isn't
        a time, and keys of another type; raises `ValueError` for a setting that librdkafka doesn't know, and
        for a `time` without `versions`.
        """
        if not isinstance(topic, str) or not topic:
            raise TypeError(f"topic must be the name of a topic, got {topic!r}")
        if not hasattr(value, "decode") or not hasattr(value, "schema"):
            raise TypeError(f"value must be a decoder, as in {_EXAMPLE}, got {value!r}")
        key = pl.String if key is None else key
        decoded = hasattr(key, "decode") and hasattr(key, "schema")
        if not (decoded or key in (pl.String, pl.Binary) or _whole(key)):
            raise TypeError(
                f"key must be pl.String, pl.Binary, a type of whole numbers, or a decoder, got {key!r}"
            )
        if versions is None and time is not None:
            raise ValueError('time is for a table that keeps versions: write versions="7d" as well')
        versions_us = 0 if versions is None else microseconds(versions)
        if versions is not None and not versions_us:
            raise ValueError("versions must be longer than 0")
        moment = None if time is None else event_time(time, pl.Schema(value.schema))
        check_settings(config or {})
        address, settings = servers(bootstrap_servers), dict(config or {})
        of_keys = KafkaSource((topic,), key, address, settings) if decoded else None
        source = KafkaSource((topic,), value, address, settings)
        return cls(source, key, of_keys, versions_us, moment)

    @property
    def topic(self) -> str:
        """The topic that it is read from."""
        return self.source.topic

    @property
    def keys(self) -> list[Any]:
        """The types of the columns that make up a key."""
        return [self.key] if self.key_source is None else list(self.key_source.schema.values())

    @property
    def decoders(self) -> list[Decoder]:
        """The decoders of the values and, if there is one, of the keys."""
        return [source.value for source in (self.source, self.key_source) if source is not None]

    def definition(self) -> str:
        """What it reads, in words."""
        definition = self.source.definition()
        value = json.dumps(definition["value"], sort_keys=True, ensure_ascii=False)
        columns = json.dumps(definition["columns"], ensure_ascii=False)
        if self.key_source is None:
            key = type_text(self.key)
        else:
            own = self.key_source.definition()
            key = json.dumps([own["value"], own["columns"]], sort_keys=True, ensure_ascii=False)
        versions = ""
        if self.versions_us:
            time = "None" if self.time is None else expression_text(self.time.meta.undo_aliases())
            versions = f", versions={duration_text(self.versions_us)}, time={time}"
        return f'table("{self.topic}", key={key}, value={value}, columns={columns}{versions})'


class Lookup(Protocol):
    """A table's current rows by their keys."""

    def find(self, keys: Sequence[pl.Series]) -> np.ndarray:
        """The number of each key's row; -1 for keys that are not in the table, and for nulls."""

    def gather(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows of these numbers; nulls for -1."""


class VersionedLookup(Lookup, Protocol):
    """The same for a table that keeps versions."""

    def find_as_of(self, keys: Sequence[pl.Series], moments: pl.Series) -> np.ndarray:
        """The number of the row that each key had at a moment; -1 as in `find`."""


@dataclass(frozen=True, eq=False)
class TableJoin:
    """A join of rows with the table's rows that have their values in the columns `on` as the key.

    `matched` names a column that records whether the table has such a row; empty for none. `as_of` names the
    column with the time whose version is used; empty for the latest. `lookup` finds the rows; without one, as
    in a definition, only its columns are known.
    """

    table: LookupTable
    on: tuple[str, ...]
    how: How = "inner"
    suffix: str = "_right"
    matched: str = ""
    as_of: str = ""
    lookup: Lookup | None = field(default=None, repr=False)
    verb = "join"

    @property
    def drops_rows(self) -> bool:
        """Whether unmatched rows are dropped."""
        return self.how == "inner"

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` unless rows of these columns can be joined."""
        for name in self.on:
            if not isinstance(name, str):
                raise TypeError(f'join: on must name the column with the key, as in on="user", got {name!r}')
            if name not in schema:
                raise ValueError(f"join: no column {name!r} in {', '.join(schema)}")
        if len(self.on) != len(self.table.keys):
            raise ValueError(
                f"join: a key of {self.table.topic!r} has {len(self.table.keys)} columns, and on= names "
                f"{len(self.on)}; name a column for each, in their order"
            )
        if self.how not in get_args(How):
            raise ValueError(f'join: with a table how must be "inner" or "left", got {self.how!r}')
        if not isinstance(self.suffix, str):
            raise TypeError(f"join: suffix must be a string to append to column names, got {self.suffix!r}")
        for name, key in zip(self.on, self.table.keys):
            given = schema[name]
            if given != key and not (_whole(given) and _whole(key)):
                raise TypeError(
                    f"join: {name!r} is of type {given}, the keys of {self.table.topic!r} are {key}; cast "
                    "the column before, or name the keys' type, as in "
                    f"LookupTable.from_kafka(..., key=pl.{given})"
                )
        if self.as_of:
            if self.as_of not in schema:
                raise ValueError(f"join: no column {self.as_of!r} in {', '.join(schema)}")
            if not isinstance(schema[self.as_of], pl.Datetime):
                raise TypeError(
                    f"join: as_of must name a column of times (pl.Datetime), {self.as_of!r} is "
                    f"{schema[self.as_of]}"
                )
            if not self.table.versions_us:
                raise ValueError(
                    f"join: as_of= needs the versions of {self.table.topic!r}: write "
                    'LookupTable.from_kafka(..., versions="7d")'
                )
        if not isinstance(self.matched, str):
            raise TypeError(f"join: matched must be the name of a new column, got {self.matched!r}")
        names = [*schema]
        for name in self._named(schema):
            if name in names:
                raise ValueError(
                    f"join: {name!r} is a column of both sides, even with the suffix; choose another suffix="
                )
            names.append(name)
        if self.matched in names:
            raise ValueError(f"join: matched must name a new column, and {self.matched!r} is one already")

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """`frame` with the table's columns beside its own."""
        schema = frame.collect_schema()
        beside = self._named([name for name in schema if name not in carried])
        types = dict(zip(beside, self.table.source.schema.values()))
        if self.matched:
            types[self.matched] = pl.Boolean()

        def joined(rows: pl.DataFrame) -> pl.DataFrame:
            assert self.lookup is not None, "only a worker has the table's rows"
            keys = [rows[name] for name in self.on]
            if self.as_of:
                numbers = cast(VersionedLookup, self.lookup).find_as_of(keys, rows[self.as_of])
            else:
                numbers = self.lookup.find(keys)
            if self.how == "inner" and (numbers < 0).any():
                rows, numbers = rows.filter(pl.Series(numbers >= 0)), numbers[numbers >= 0]
            partners = self.lookup.gather(numbers)
            partner_known = [pl.Series(self.matched, numbers >= 0)] if self.matched else []
            return rows.hstack([*partners.rename(dict(zip(partners.columns, beside))), *partner_known])

        pushed: dict[str, Any] = {"predicate_pushdown": False, "projection_pushdown": False}
        return frame.map_batches(joined, schema=pl.Schema({**schema, **types}), **pushed)

    def bound(self, lookup: Lookup) -> TableJoin:
        """The same join with a lookup."""
        return replace(self, lookup=lookup)

    def _named(self, schema: Sequence[str] | Mapping[str, Any]) -> list[str]:
        """The names of the table's columns beside those of a row."""
        return [name + self.suffix if name in schema else name for name in self.table.source.schema]

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the table, the column, how, and the suffix."""
        on = json.dumps(self.on[0] if len(self.on) == 1 else self.on, ensure_ascii=False)
        options = [f"on={on}", f'how="{self.how}"', f"suffix={json.dumps(self.suffix)}"]
        if self.as_of:
            options.append(f"as_of={json.dumps(self.as_of, ensure_ascii=False)}")
        if self.matched:
            options.append(f"matched={json.dumps(self.matched, ensure_ascii=False)}")
        return [self.verb, self.table.definition(), *options]


def _whole(kind: Any) -> bool:
    return isinstance(kind, (pl.DataType, type(pl.Int64))) and kind.is_integer()

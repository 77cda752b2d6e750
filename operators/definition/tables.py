"""A compacted topic as a table, and a join with it as a step of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import polars as pl

from ..formats.decode import Decoder
from ..kafka.settings import check_settings, servers
from .sources import KafkaSource
from .text import type_text

How = Literal["inner", "left"]

_EXAMPLE = 'Table.from_kafka("users", value=json({"country": pl.String}))'


@dataclass(frozen=True, eq=False)
class Table:
    """A topic read as a table: the latest message of each key is its row.

    What Kafka calls a compacted topic, such as the changes of a database's table. A stream joins it by
    `Stream.join`. Each worker reads it whole before it counts its first row, keeps it up to date, and holds
    it in memory: about the size of its values as columns and 50 bytes a key.

    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, Table, count, json
    >>> users = Table.from_kafka("users", value=json({"country": pl.String}))
    >>> posts = Stream.from_batches({"author": pl.String, "at": pl.String}, time="at")
    >>> asked = posts.join(users, on="author").group_by("country").tumbling("1m").agg(posts=count())
    >>> tester = StreamTester(asked)
    >>> tester.feed_table("users", {"ann": {"country": "FI"}, "bob": {"country": "NO"}, "eve": None})
    >>> rows = [{"author": name, "at": "2026-01-01T00:00:01Z"} for name in ("ann", "bob", "ann", "eve")]
    >>> tester.feed(rows)
    Account(read=4, counted=3, filtered=1, late=0, dead_lettered=0)
    >>> dict(tester.finish().windows().select("country", "posts").rows())
    {'FI': 2, 'NO': 1}
    """

    source: KafkaSource
    key: Any = pl.String

    @classmethod
    def from_kafka(
        cls,
        topic: str,
        *,
        value: Decoder,
        key: Any = pl.String,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        config: Mapping[str, Any] | None = None,
    ) -> Table:
        """The table of the latest messages of `topic`, their values decoded by `value`.

        `key` is the Polars type of the messages' keys: text, a whole number written as text (``pl.Int64``),
        or bytes (``pl.Binary``). A message with a null value deletes its key. So does one that can't be
        decoded, with a warning: what the key's row is now isn't known. Messages without a key, or with one
        that is not of its type, are left out with a warning.

        `bootstrap_servers` and `config` are as in `Stream.from_kafka`; the user needs the right READ on the
        topic. Raises `TypeError` for a topic that isn't named, a value that isn't a decoder and another type
        of keys, and `ValueError` for a setting that librdkafka doesn't know.
        """
        if not isinstance(topic, str) or not topic:
            raise TypeError(f"the topic is {topic!r}; name one topic, as a string")
        if not hasattr(value, "decode") or not hasattr(value, "schema"):
            raise TypeError(f"value is {value!r}, not a decoder; write one, as in {_EXAMPLE}")
        if not (key in (pl.String, pl.Binary) or _whole(key)):
            raise TypeError(f"key is {key!r}; it can be pl.String, pl.Binary or a type of whole numbers")
        check_settings(config or {})
        return cls(KafkaSource(topic, value, servers(bootstrap_servers), dict(config or {})), key)

    @property
    def topic(self) -> str:
        """The topic that it is read from."""
        return self.source.topic

    def definition(self) -> str:
        """What it reads, in words."""
        told = self.source.definition()
        value = json.dumps(told["value"], sort_keys=True, ensure_ascii=False)
        columns = json.dumps(told["columns"], ensure_ascii=False)
        return f'table("{self.topic}", key={type_text(self.key)}, value={value}, columns={columns})'


class Lookup(Protocol):
    """A table's rows by their keys, as they are now."""

    def find(self, keys: pl.Series) -> np.ndarray:
        """The number of each key's row; -1 for keys that the table doesn't have, and for null."""

    def take(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows of these numbers; nulls for -1."""


@dataclass(frozen=True, eq=False)
class TableJoin:
    """A row beside the table's row whose key is its value in the column `on`.

    `lookup` is where the rows are found; without one, as in a definition, only its columns are known.
    """

    table: Table
    on: str
    how: How = "inner"
    suffix: str = "_right"
    lookup: Lookup | None = field(default=None, repr=False)
    verb = "join"

    @property
    def drops_rows(self) -> bool:
        """Whether rows without a partner are left out."""
        return self.how == "inner"

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` unless rows of these columns can be joined."""
        if not isinstance(self.on, str):
            raise TypeError(f'join: on is {self.on!r}; name the column whose value is the key, on="user"')
        if self.on not in schema:
            raise ValueError(f"join: no column {self.on!r} in {', '.join(schema)}")
        if self.how not in get_args(How):
            raise ValueError(f'join: how is {self.how!r}; with a table it may be "inner" or "left"')
        if not isinstance(self.suffix, str):
            raise TypeError(f"join: suffix is {self.suffix!r}; it is text that is put behind a column's name")
        given, key = schema[self.on], self.table.key
        if given != key and not (_whole(given) and _whole(key)):
            raise TypeError(
                f"join: {self.on!r} is of type {given}, the keys of {self.table.topic!r} are {key}; cast the "
                f"column before, or name the keys' type, as in Table.from_kafka(..., key=pl.{given})"
            )
        taken = [*schema]
        for name in self._named(schema):
            if name in taken:
                raise ValueError(
                    f"join: {name!r} is a column of both sides, with the suffix too; choose another suffix="
                )
            taken.append(name)

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """`frame` with the table's columns beside its own."""
        schema = frame.collect_schema()
        beside = self._named([name for name in schema if name not in carried])
        types = dict(zip(beside, self.table.source.schema.values()))

        def joined(rows: pl.DataFrame) -> pl.DataFrame:
            assert self.lookup is not None, "only a worker has the table's rows"
            numbers = self.lookup.find(rows[self.on])
            if self.how == "inner" and (numbers < 0).any():
                rows, numbers = rows.filter(pl.Series(numbers >= 0)), numbers[numbers >= 0]
            found = self.lookup.take(numbers)
            return rows.hstack(found.rename(dict(zip(found.columns, beside))))

        pushed: dict[str, Any] = {"predicate_pushdown": False, "projection_pushdown": False}
        return frame.map_batches(joined, schema=pl.Schema({**schema, **types}), **pushed)

    def bound(self, lookup: Lookup) -> TableJoin:
        """The same with rows to be found."""
        return replace(self, lookup=lookup)

    def _named(self, schema: Sequence[str] | Mapping[str, Any]) -> list[str]:
        """The names of the table's columns beside those of a row."""
        return [name + self.suffix if name in schema else name for name in self.table.source.schema]

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the table, the column, how, and the suffix."""
        told = {"on": self.on, "how": self.how, "suffix": self.suffix}
        return [self.verb, self.table.definition(), *(f'{k}="{v}"' for k, v in told.items())]


def _whole(kind: Any) -> bool:
    return isinstance(kind, (pl.DataType, type(pl.Int64))) and kind.is_integer()

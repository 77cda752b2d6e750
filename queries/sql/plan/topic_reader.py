"""The rows of a topic as the beginning of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.definition.tables import LookupTable
from ....operators.files.local_run import stream_of
from ..errors import error_at, errors_at
from ..scalars.scalar_functions import FUNCTIONS
from ..scalars.scalars import Scalar, Scalars
from ..scalars.time_functions import timestamp_of_text
from .catalog import Relation, file_type
from .stream_builder import StreamBuilder, with_columns

MESSAGE = {"rowtime": "timestamp", "rowpartition": "partition", "rowoffset": "offset"}
"""Columns that every stream has, and the parts of a message that they contain."""


@dataclass(frozen=True)
class TopicReader:
    """Builds streams of topics; `stream_class` is their class, brokers and settings apply to all."""

    servers: str = "localhost:9092"
    config: Mapping[str, Any] | None = None
    stream_class: type[Stream] = Stream

    @property
    def servers_text(self) -> str:
        """The Python that names the brokers; empty for the default."""
        return "" if self.servers == "localhost:9092" else f", bootstrap_servers={self.servers!r}"

    def lookup(self, relation: Relation, versioned: bool = False) -> tuple[LookupTable, str]:
        """The table for a join, and its Python."""
        table, text = relation.lookup(self.servers, self.config, versioned)
        return table, f"{text}{self.servers_text})"

    def scan(
        self, relation: Relation, names: set[str], time: str, at: Any
    ) -> tuple[StreamBuilder, dict[str, str]]:
        """The stream of a relation's topic, and its columns; `names` are those that the query uses."""
        if relation.stored:
            raise error_at(at, f"{relation.name} is a stored table: query it without EMIT and by itself")
        if relation.path:
            return self._files(relation, names, time, at)
        message: dict[str, str] = {}
        if relation.key and (relation.key.lower() in names or "*" in names):
            message[relation.key] = "key"
        for name, part in MESSAGE.items():
            if name in names and not (name == "rowtime" and relation.time):
                message[name.upper()] = part
        options: dict[str, Any] = {"value": relation.decoder()}
        texts = [repr(relation.topic), f"value={relation.decoder_source()}"]
        if time:
            options["time"], text = relation.event_time(time)
            texts.append(f"time={text}")
        if message:
            options["message"] = message
            texts.append(f"message={message!r}")
        with errors_at(at):
            stream = self.stream_class.from_kafka(
                relation.topic, bootstrap_servers=self.servers, config=self.config, **options
            )
        builder = StreamBuilder(stream, [f"sg.Stream.from_kafka({', '.join(texts)}{self.servers_text})"])
        builder.note(relation.columns)
        columns = {name: name for name in relation.columns if name in stream.columns}
        _plain_types(builder, relation, at)
        if relation.key in message and relation.columns[relation.key] != pl.String():
            make = Scalars(stream.columns)
            # A key that is not a number makes a dead letter, like a value that doesn't fit.
            one = make.call(make.column(relation.key), "cast", relation.columns[relation.key])
            with_columns(builder, {relation.key: one}, at)
        if "ROWTIME" in message:
            make = Scalars(builder.columns)
            plain = make.call(make.column("ROWTIME"), "dt.replace_time_zone", None)
            with_columns(builder, {"ROWTIME": make.cast(plain, pl.Datetime("us"))}, at)
        columns |= {name: name for name in message if name not in columns}
        if relation.time and "rowtime" in names:
            with_columns(builder, {"ROWTIME": row_time(Scalars(builder.columns), relation)}, at)
            columns["ROWTIME"] = "ROWTIME"
        return builder, columns

    def _files(
        self, relation: Relation, names: set[str], time: str, at: Any
    ) -> tuple[StreamBuilder, dict[str, str]]:
        """The stream of a relation's files, and its columns."""
        for name in ("rowpartition", "rowoffset", *(() if relation.time else ("rowtime",))):
            if name in names:
                hint = "; name its time, WITH (TIMESTAMP='…')" if name == "rowtime" else ""
                raise error_at(at, f"{relation.name} is read from files, which have no {name.upper()}{hint}")
        moment, text = relation.event_time(time) if time else (None, "")
        with errors_at(at):
            stream = stream_of(self.stream_class, relation.path, moment)
        text = f", time={text}" if text else ""
        builder = StreamBuilder(stream, [f"sg.Stream.from_files({relation.path!r}{text})"])
        columns = {name: name for name in relation.columns}
        _plain_types(builder, relation, at)
        if "rowtime" in names:
            with_columns(builder, {"ROWTIME": row_time(Scalars(builder.columns), relation)}, at)
            columns["ROWTIME"] = "ROWTIME"
        return builder, columns


def _plain_types(builder: StreamBuilder, relation: Relation, at: Any) -> None:
    """Cast columns to SQL's types: times in UTC without a zone, and signed numbers."""
    make = Scalars(builder.columns)
    cast: dict[str, Scalar] = {}
    for name, kind in builder.stream.columns.items():
        wanted = relation.columns.get(name, kind)
        if wanted != kind and wanted == file_type(kind):
            one = make.column(name)
            if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
                one = make.call(make.call(one, "dt.convert_time_zone", "UTC"), "dt.replace_time_zone", None)
            cast[name] = make.cast(one, wanted)
    if cast:
        with_columns(builder, cast, at)


def row_time(make: Scalars, relation: Relation) -> Scalar:
    """A row's event time as a TIMESTAMP."""
    one = make.column(relation.time)
    if one.kind == "whole":
        return FUNCTIONS["FROM_UNIXTIME"].make(make, one)
    if relation.time_format:
        return FUNCTIONS["PARSE_TIMESTAMP"].make(make, one, make.literal(relation.time_format))
    return timestamp_of_text(make, one) if one.kind == "text" else make.cast(one, pl.Datetime("us"))

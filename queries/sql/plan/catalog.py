"""The streams and tables that a script has named, and how to read each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.definition.tables import LookupTable
from ....operators.files.inputs import inputs_of
from ....operators.formats.avro.decoder import avro
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ....operators.formats.protobuf.decoder import protobuf
from ....operators.formats.text.access_log import access_log
from ....operators.formats.text.csv import csv
from ....operators.formats.text.plain import raw
from ....operators.formats.text.plain import text as text_decoder
from ....operators.formats.text.syslog import syslog
from ....operators.windows.durations import microseconds
from ...client import Client
from ..errors import SqlError, error_at, errors_at, nearest
from ..parse.statements import CreateSource, DeclaredColumn, Options, Word
from ..scalars.scalars import Map, a_type, map_places, plain_type, sql_type, type_source
from ..scalars.time_functions import java_format
from ..scalars.types import column_type

_OPTIONS = (
    *("KAFKA_TOPIC", "VALUE_FORMAT", "VALUE_DELIMITER", "TIMESTAMP", "TIMESTAMP_FORMAT", "KEY_FORMAT"),
    *("FORMAT", "KEY", "SKETCHES", "GROUP", "SERVER", "TABLE", "VERSIONS"),
    *("REGISTRY", "SUBJECT", "MESSAGE", "PATH", "WRAP_SINGLE_VALUE", "PATTERN", "HEADER", "TIME_ZONE"),
)
_NOT_HERE = {
    "WINDOW_TYPE": "a key with a window in it can't be read; the tables of windows that a script writes have "
    "window_start and window_end in their values",
    **dict.fromkeys(
        ("KEY_SCHEMA_ID", "KEY_SCHEMA_FULL_NAME"),
        "keys are text, without a schema; other keys are for Python, with key=",
    ),
    "VALUE_SCHEMA_ID": "each message is read by the schema that it names; SUBJECT='…' chooses whose columns",
    "VALUE_SCHEMA_FULL_NAME": "write MESSAGE='…', the message of a Protobuf schema",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "what is written is JSON, which has null; leave it out",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "keys are text; leave it out",
    "KEY_DELIMITER": "a key is one column; leave it out",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "what is written is JSON; leave it out",
    **dict.fromkeys(
        ("RETENTION_MS", "CLEANUP_POLICY"), "create the topic with Kafka's own tools first, and leave it out"
    ),
    "CONNECTOR": "write KAFKA_TOPIC='…', VALUE_FORMAT='JSON' for a topic, PATH='…' for files",
    "TOPIC": "write KAFKA_TOPIC='…'",
    **dict.fromkeys(
        ("PROPERTIES.BOOTSTRAP.SERVERS", "PROPERTIES.BOOTSTRAP.SERVER"),
        "all statements read from the brokers of --bootstrap-servers; leave it out",
    ),
    **dict.fromkeys(
        ("SCAN.STARTUP.MODE", "PROPERTIES.GROUP.ID"),
        "write SET 'auto.offset.reset' = 'latest', or run the script with --group; leave it out",
    ),
    "SOURCED_BY_CONNECTOR": "it changes nothing here; leave it out",
}
"""Options of ksqlDB that are not supported, each with the reason or with what to write."""
_STORED = {"SKETCHES": "sketches", "GROUP": "group", "SERVER": "server"}
_REGISTERED: dict[str, Any] = {"AVRO": avro, "PROTOBUF": protobuf}
"""Formats whose columns are defined in a schema registry."""
_LOGS: dict[str, Any] = {"SYSLOG": syslog, "ACCESS_LOG": access_log}
"""Formats with columns of their own."""
_FORMATS = ("JSON", "DELIMITED", *_REGISTERED, *_LOGS, "TEXT")
_DELIMITERS = {"SPACE": " ", "TAB": "\t"}


@dataclass(frozen=True)
class Relation:
    """A stream or a table by name: its topic, its columns, the format of values, its event time.

    `key` is the column that comes from the messages' keys. A stored table has no topic: `sketches` is its
    folder, `group` the running group that it belongs to, `server` the address of a query server that has it;
    with both a group and a folder, the folder has the group's closed windows. `registered` is the decoder of
    a format whose schema is in a registry, `registered_source` its Python. `path` names files, a pattern or a
    folder in place of a topic; their columns are the files' own. `versions` is how long replaced versions of
    a table's rows are held. `lost_time` is the name of the event time in the query that writes a stream, if
    no column has it.
    """

    name: str
    kind: str
    topic: str
    columns: Mapping[str, pl.DataType]
    format: str = "JSON"
    delimiter: str = ","
    time: str = ""
    time_format: str = ""
    key: str = ""
    sketches: str = ""
    group: str = ""
    server: str = ""
    server_table: str = ""
    text: str = ""
    windowed: bool = False
    registered: Any = None
    registered_source: str = ""
    lost_time: str = ""
    path: str = ""
    versions: str = "1d"

    @property
    def stored(self) -> str:
        """The location of a stored table; empty for a topic."""
        return self.sketches or self.group or self.server

    @property
    def values(self) -> dict[str, pl.DataType]:
        """The columns of the messages' values."""
        return {name: kind for name, kind in self.columns.items() if name != self.key}

    def decoder(self) -> Any:
        """The decoder of the values."""
        if self.registered is not None:
            return self.registered
        if self.format == "JSON":
            return json({name: _json_column(name, kind) for name, kind in self.values.items()})
        return csv(self.values, delimiter=self.delimiter)

    def decoder_source(self) -> str:
        """The Python for the decoder."""
        if self.registered_source:
            return self.registered_source
        types = ", ".join(f"{name!r}: {_column_source(name, kind)}" for name, kind in self.values.items())
        if self.format == "JSON":
            return f"sg.json({{{types}}})"
        more = "" if self.delimiter == "," else f", delimiter={self.delimiter!r}"
        return f"sg.csv({{{types}}}{more})"

    def lookup(
        self, bootstrap_servers: str, config: Mapping[str, Any] | None, versioned: bool = False
    ) -> tuple[LookupTable, str]:
        """The table for a join, and its Python up to the brokers."""
        key = self.columns[self.key]
        text = f"sg.LookupTable.from_kafka({self.topic!r}, value={self.decoder_source()}"
        text += f", key={type_source(key)}" if key != pl.String() else ""
        options: dict[str, Any] = {}
        if versioned:
            options["versions"] = self.versions
            text += f", versions={self.versions!r}"
            if self.time:
                options["time"], time = self.event_time(self.time)
                text += f", time={time}"
        table = LookupTable.from_kafka(
            self.topic,
            value=self.decoder(),
            key=key,
            bootstrap_servers=bootstrap_servers,
            config=config,
            **options,
        )
        return table, text

    def event_time(self, column: str) -> tuple[str | pl.Expr, str]:
        """The event time in a column, in the form for `Stream.from_kafka`, and the Python for it."""
        kind = self.columns[column]
        if self.time_format and column == self.time:
            chrono = java_format(self.time_format)
            return (
                pl.col(column).str.strptime(pl.Datetime("us"), chrono, strict=False),
                f"pl.col({column!r}).str.strptime(pl.Datetime('us'), {chrono!r}, strict=False)",
            )
        if kind.is_integer():
            return (
                pl.from_epoch(pl.col(column), time_unit="ms"),
                f'pl.from_epoch(pl.col({column!r}), time_unit="ms")',
            )
        return column, repr(column)


@dataclass
class Catalog:
    """Relations by name; names are case-insensitive unless quoted, as everywhere in SQL."""

    relations: dict[str, Relation] = dataclasses.field(default_factory=dict)
    views: dict[str, exp.Select] = dataclasses.field(default_factory=dict)
    """Queries of rows, by their names in lower case."""

    def add(self, relation: Relation, at: Word, replace: bool, if_not_exists: bool) -> None:
        """Add a relation. Raises `SqlError` for a name that is already used, unless that is allowed."""
        if relation.name.lower() in self.views:
            raise error_at(at, f"{relation.name} is a view already; DROP it first, or choose another name")
        known = self.relations.get(relation.name.lower())
        if known is not None and not replace:
            if if_not_exists:
                return
            raise error_at(
                at,
                f"{known.name} is a {known.kind} already; DROP it first, choose another name, or write "
                "CREATE OR REPLACE",
            )
        self.relations[relation.name.lower()] = relation

    def add_view(self, name: Word, select: exp.Select, replace: bool) -> None:
        """Add a view. Raises `SqlError` for a name that is already used."""
        lower = str(name).lower()
        if (known := self.relations.get(lower)) is not None:
            raise error_at(name, f"{known.name} is a {known.kind} already; choose another name")
        if lower in self.views and not replace:
            raise error_at(name, f"{name} is a view already; choose another name, or write CREATE OR REPLACE")
        self.views[lower] = select

    def get(self, name: str, at: Any) -> Relation:
        """The relation with this name. Raises `SqlError` with the nearest name."""
        if name.lower() in self.views:
            raise error_at(at, f"{name} is a view, which is read by FROM alone: SELECT … FROM {name}")
        if name.lower() not in self.relations:
            known = [one.name for one in self.relations.values()]
            hint = nearest(name, known) if known else f"CREATE STREAM {name} (…) WITH (KAFKA_TOPIC='…') first"
            raise error_at(at, f"no stream or table is called {name}; {hint}")
        return self.relations[name.lower()]

    def relation(self, table: Any) -> Relation:
        """The relation that a table in a query refers to."""
        if isinstance(table, exp.Subquery):
            raise error_at(
                table.this, "a query within a query: CREATE STREAM … AS SELECT first, and read that"
            )
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise error_at(table, "FROM must name a stream or a table")
        return self.get(table.name, table)

    def of_kind(self, kind: str) -> list[Relation]:
        """All streams, or all tables."""
        return [one for one in self.relations.values() if one.kind == kind]


def relation_of(node: CreateSource, text: str, registry: str = "") -> Relation:
    """The relation that a CREATE declares. Raises `SqlError`.

    `registry` is the address of the default schema registry.
    """
    options = node.options
    check_options(options, _OPTIONS)
    columns = _columns(node.columns)
    form, delimiter = _format(options)
    if stored := [name for name in _STORED if name in options]:
        return _stored_relation(node, stored, text)
    if "PATH" in options:
        return _files(node, text)
    if "TABLE" in options:
        raise error_at(options["TABLE"], "TABLE names a table of a query server: write SERVER='http://…' too")
    if "KAFKA_TOPIC" not in options:
        raise error_at(
            node.name,
            "WITH must name the topic, KAFKA_TOPIC='…', files, PATH='posts/*.parquet', or what holds "
            "sketches: SKETCHES='folder', GROUP='…' or SERVER='http://…'",
        )
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", str(options["KAFKA_TOPIC"])):
        raise error_at(
            options["KAFKA_TOPIC"],
            "a topic's name must be up to 249 letters, digits, dots, underscores and hyphens, got "
            f"{str(options['KAFKA_TOPIC'])!r}",
        )
    decoder, source = _registered(node, form, columns, registry)
    if decoder is None:
        decoder, source = _of_text(node, form, columns, delimiter)
    if not columns:
        raise error_at(
            node.name,
            f"{node.name} must name its columns, such as (userid VARCHAR, viewtime BIGINT); "
            f"PRINT '{options['KAFKA_TOPIC']}' shows what is in the topic",
        )
    key = _key(node, columns)
    if form in ("JSON", "DELIMITED"):
        for one in node.columns:
            if _holds_bytes(columns[str(one.name)]):
                raise error_at(
                    one.name,
                    f"{form} has no BYTES: declare {one.name} as VARCHAR, the base64 text it holds",
                )
    for one in node.columns:
        if form != "JSON" and map_places(columns[str(one.name)]):
            raise error_at(
                one.name,
                f"a MAP is an object in JSON; {form} has none"
                + (
                    ""
                    if form not in _REGISTERED
                    else ": leave the columns out, and all are taken from the registry"
                ),
            )
    name, pattern = _declared_time(node, columns)
    versions = _versions(node)
    relation = Relation(
        str(node.name),
        node.kind,
        str(options["KAFKA_TOPIC"]),
        columns,
        "DELIMITED with a header" if form == "DELIMITED" and decoder is not None else form,
        delimiter,
        name,
        pattern,
        key,
        text=text,
        registered=decoder,
        registered_source=source,
        versions=versions,
    )
    with errors_at(node.name):
        relation.decoder()
    return relation


def _json_column(name: str, kind: pl.DataType) -> Any:
    """How a JSON column is read; MAPs are objects with arbitrary keys."""
    places = map_places(kind)
    if not places:
        return kind
    if places == ((),) and isinstance(kind, Map):
        return field([name], plain_type(kind.value), entries=True)
    return field([name], plain_type(kind), entries=places)


def _column_source(name: str, kind: pl.DataType) -> str:
    """The Python for a JSON column."""
    places = map_places(kind)
    if not places:
        return type_source(kind)
    if places == ((),) and isinstance(kind, Map):
        return f"sg.field([{name!r}], {type_source(kind.value)}, entries=True)"
    return f"sg.field([{name!r}], {type_source(kind)}, entries={[list(place) for place in places]!r})"


def _holds_bytes(kind: Any) -> bool:
    if isinstance(kind, pl.List):
        return _holds_bytes(kind.inner)
    if isinstance(kind, pl.Struct):
        return any(_holds_bytes(one.dtype) for one in kind.fields)
    return isinstance(kind, pl.Binary)


def _declared_time(node: CreateSource, columns: Mapping[str, pl.DataType]) -> tuple[str, str]:
    """The event time's column and its format, each empty if the statement names none."""
    time, pattern = node.options.get("TIMESTAMP"), node.options.get("TIMESTAMP_FORMAT")
    name = "" if time is None else time_column(time, columns, str(node.name))
    if pattern is not None:
        if not name or columns[name] != pl.String():
            raise error_at(pattern, "TIMESTAMP_FORMAT is for a TIMESTAMP column of type VARCHAR")
        with errors_at(pattern):
            java_format(str(pattern))
    return name, "" if pattern is None else str(pattern)


def _versions(node: CreateSource) -> str:
    """How long replaced versions of a table's rows are held."""
    named = node.options.get("VERSIONS")
    if named is None:
        return Relation.versions
    if node.kind != "table":
        raise error_at(
            named, "VERSIONS is for a TABLE: a stream's rows don't replace each other; leave it out"
        )
    with errors_at(named):
        if not microseconds(str(named)):
            raise error_at(named, "VERSIONS must be longer than 0")
    return str(named)


def file_type(kind: pl.DataType) -> pl.DataType:
    """The SQL type of a file's column: SQL has no zones, unsigned numbers or categories.

    >>> file_type(pl.Datetime("ns", "UTC")), file_type(pl.UInt16()), file_type(pl.Categorical())
    (Datetime(time_unit='us', time_zone=None), Int64, String)
    """
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us")
    if isinstance(kind, pl.UInt8 | pl.UInt16 | pl.UInt32):
        return pl.Int64()
    if isinstance(kind, pl.Categorical | pl.Enum):
        return pl.String()
    return kind


def _files(node: CreateSource, text: str) -> Relation:
    """A stream of the rows of files, which define the columns."""
    path = node.options["PATH"]
    for option, value in node.options.items():
        if option not in ("PATH", "TIMESTAMP", "TIMESTAMP_FORMAT"):
            raise error_at(
                value, f"{option} is for a topic, and {node.name} is read from files; leave it out"
            )
    if node.kind == "table":
        raise error_at(path, "files are rows one by one: write CREATE STREAM")
    if node.columns:
        raise error_at(node.columns[0].name, f"{node.name} gets its columns from its files; leave them out")
    with errors_at(path):
        known = inputs_of(str(path))[0].columns({})
        columns = {name: file_type(kind) for name, kind in known.items()}
    name, pattern = _declared_time(node, columns)
    return Relation(
        str(node.name), "stream", "", columns, "FILES", ",", name, pattern, text=text, path=str(path)
    )


def time_column(named: Word, columns: Mapping[str, pl.DataType], of: str) -> str:
    """The column in the option TIMESTAMP. Raises `SqlError` for a column that isn't a time."""
    name = column_named(_bare(named), columns, named, of)
    if not (columns[name].is_integer() or isinstance(columns[name], (pl.String, pl.Date, pl.Datetime))):
        raise error_at(named, f"the TIMESTAMP column {name} must be BIGINT, VARCHAR or TIMESTAMP")
    return name


def _registered(
    node: CreateSource, form: str, columns: dict[str, pl.DataType], registry: str
) -> tuple[Any, str]:
    """The decoder of a format with a registry and its Python; adds the columns if none are declared."""
    options = node.options
    if form not in _REGISTERED:
        for name in ("REGISTRY", "SUBJECT", "MESSAGE"):
            if name in options:
                raise error_at(
                    options[name], f"{name} is for VALUE_FORMAT='AVRO' or 'PROTOBUF'; leave it out"
                )
        return None, ""
    address = options.get("REGISTRY")
    if address is None and not registry:
        raise error_at(
            options.get("VALUE_FORMAT") or options["FORMAT"],
            f"{form} needs a schema registry: REGISTRY='http://localhost:8081', or "
            "SET 'schema.registry.url' = '…' before it",
        )
    given: dict[str, Any] = {"registry": str(address or registry)}
    given["subject"] = str(options.get("SUBJECT", f"{options['KAFKA_TOPIC']}-value"))
    keys = [str(one.name) for one in node.columns if one.role]
    named = [name for name in columns if name not in keys]
    message = options.get("MESSAGE")
    if message is not None and form != "PROTOBUF":
        raise error_at(message, "MESSAGE names a message of a Protobuf schema; leave it out")
    first = () if message is None else (str(message),)
    with errors_at(node.name):
        decoder = _REGISTERED[form](*first, **given)
        known = dict(decoder.schema)
        chosen = [column_named(name, known, node.name, given["subject"]) for name in named]
        if chosen:
            given["columns"] = dict(zip(named, chosen)) if named != chosen else named
            decoder = _REGISTERED[form](*first, **given)
    for one in node.columns:
        name = str(one.name)
        if name in decoder.schema and _apart(columns[name], decoder.schema[name]):
            raise error_at(
                one.name,
                f"{name} is {a_type(decoder.schema[name])} in the registry, got "
                f"{sql_type(columns[name])}; leave the columns out, and all are taken from there",
            )
    columns |= {name: kind for name, kind in decoder.schema.items() if name not in keys}
    texts = [*map(repr, first), *(f"{name}={value!r}" for name, value in given.items())]
    return decoder, f"sg.{form.lower()}({', '.join(texts)})"


def _of_text(
    node: CreateSource, form: str, columns: dict[str, pl.DataType], delimiter: str
) -> tuple[Any, str]:
    """The decoder of logs, of text and of CSV with a header, and its Python; None for other formats."""
    options = node.options
    of = {"PATTERN": ("TEXT",), "TIME_ZONE": ("SYSLOG",), "HEADER": ("DELIMITED",)}
    for name, forms in of.items():
        if name in options and form not in forms:
            raise error_at(options[name], f"{name} is for VALUE_FORMAT='{forms[0]}'; leave it out")
    keys = [str(one.name) for one in node.columns if one.role]
    values = {name: kind for name, kind in columns.items() if name not in keys}
    types = f"{{{', '.join(f'{name!r}: {type_source(kind)}' for name, kind in values.items())}}}"
    if form in _LOGS:
        zone = options.get("TIME_ZONE")
        given = () if zone is None else (str(zone),)
        with errors_at(zone or node.name):
            decoder = _LOGS[form](*given)
        known = {name: file_type(kind) for name, kind in decoder.schema.items()}
        for name, kind in values.items():
            own = column_named(name, known, node.name, form)
            if own != name or known[own] != kind:
                raise error_at(
                    node.name,
                    f"{name} must be declared as in {form}: {own} {sql_type(known[own])}; or leave the "
                    "columns out, to get them all",
                )
        columns |= {} if values else known
        return decoder, f"sg.{form.lower()}({', '.join(map(repr, given))})"
    if form == "TEXT" and values:
        pattern = options.get("PATTERN")
        with errors_at(pattern or node.name):
            if pattern is not None:
                return text_decoder(str(pattern), values), f"sg.text({str(pattern)!r}, {types})"
            if len(values) != 1:
                raise error_at(
                    node.name, "TEXT without a PATTERN has one column, the whole text as a VARCHAR"
                )
            ((name, kind),) = values.items()
            return raw(name, kind), f"sg.raw({name!r}, {type_source(kind)})"
    header = options.get("HEADER")
    if header is None or str(header).upper() == "FALSE":
        return None, ""
    if str(header).upper() != "TRUE":
        raise error_at(header, f"HEADER must be TRUE or FALSE, got {header}")
    more = "" if delimiter == "," else f", delimiter={delimiter!r}"
    return csv(values, delimiter=delimiter, header=True), f"sg.csv({types}{more}, header=True)"


def _apart(declared: pl.DataType, known: pl.DataType) -> bool:
    """Whether two types are of different kinds; a TIMESTAMP may be in any unit."""
    both_times = isinstance(declared, pl.Datetime) and isinstance(known, pl.Datetime)
    return declared != known and not both_times


def _stored_relation(node: CreateSource, stored: list[str], text: str) -> Relation:
    """A table of sketches: in a folder, of a running group, or of a query server."""
    options, name = node.options, str(node.name)
    both = stored == ["SKETCHES", "GROUP"]
    first = options[stored[0]]
    if node.kind != "table" or node.columns:
        raise error_at(
            first, f"{stored[0]} names a stored table: write CREATE TABLE {name} WITH ({stored[0]}='…')"
        )
    for option, value in options.items():
        if option != stored[0] and not (option == "TABLE" and stored[0] == "SERVER") and not both:
            raise error_at(value, f"{option} is not for a stored table of {stored[0]}; leave it out")
    where: dict[str, Any] = {}
    for option in stored if both else stored[:1]:
        if not str(options[option]):
            raise error_at(options[option], f"{option} must not be empty")
        where[_STORED[option]] = str(options[option])
    relation = Relation(name, "table", "", {}, text=text, **where)
    if stored[0] != "SERVER":
        return relation
    with errors_at(first):
        Client(str(first)).close()
    return replace(relation, server_table=str(options.get("TABLE", name)))


def check_options(options: Options, known: tuple[str, ...]) -> None:
    """Raise `SqlError` for an unknown option."""
    for name, value in options.items():
        if name in ("PARTITIONS", "REPLICAS") and name not in known:
            raise error_at(
                value, f"{name}: create the topic with Kafka's own tools first, and leave {name} out"
            )
        if name == "WRAP_SINGLE_VALUE" and name in known and str(value).upper() != "TRUE":
            raise error_at(value, f"WRAP_SINGLE_VALUE must be TRUE, since a value is an object, got {value}")
        if name in _NOT_HERE and name not in known:
            raise error_at(value, f"{name}: {_NOT_HERE[name]}")
        if name == "FORMAT" and "VALUE_FORMAT" in options:
            raise error_at(value, "FORMAT says the same as VALUE_FORMAT; leave one of them out")
        if name not in known:
            raise error_at(value, f"no option is called {name}; {nearest(name, known)}")


def _bare(name: Word) -> str:
    """A column's name in an option, where it may be quoted as well."""
    text = str(name)
    return text[1:-1] if len(text) > 2 and text[0] in '"`' and text[0] == text[-1] else text


def column_named(name: str, columns: Mapping[str, Any], at: Any, of: str) -> str:
    """A column by name, ignoring case. Raises `SqlError` with the nearest name."""
    if name in columns:
        return name
    fit = [one for one in columns if one.lower() == name.lower()]
    if len(fit) > 1:
        raise error_at(at, f'{name} may be {" or ".join(fit)}; write it in double quotes, "{fit[0]}"')
    if not fit:
        raise error_at(at, f"{of} has no column {name}; {nearest(name, columns)}")
    return fit[0]


def _columns(declared: tuple[DeclaredColumn, ...]) -> dict[str, pl.DataType]:
    columns: dict[str, pl.DataType] = {}
    for one in declared:
        if str(one.name) in columns:
            raise error_at(one.name, f"{one.name} is declared twice")
        columns[str(one.name)] = column_type(one.type)
    return columns


def _key(node: CreateSource, columns: Mapping[str, pl.DataType]) -> str:
    keys = [one.name for one in node.columns if one.role]
    if len(keys) > 1:
        raise error_at(keys[1], "a key of several columns: write the stream in Python, with key=json({…})")
    named = node.options.get("KEY")
    if named is not None and not keys:
        name = column_named(_bare(named), columns, named, str(node.name))
        if node.kind == "stream":
            raise error_at(named, f"KEY: declare the column as {name} {'VARCHAR'} KEY")
        keys = [Word(name, named.start, named.end)]
    if node.kind == "table" and not keys:
        raise error_at(node.name, "a table must have a key: declare one column as PRIMARY KEY")
    if keys and not (columns[str(keys[0])].is_integer() or columns[str(keys[0])] == pl.String()):
        raise error_at(keys[0], "a key must be VARCHAR or a whole number")
    check_key_format(node.options, None if not keys else columns[str(keys[0])])
    return str(keys[0]) if keys else ""


def check_key_format(options: Options, kind: pl.DataType | None) -> None:
    """Raise `SqlError` for a key format that isn't text; `kind` is the key's type, None without a key.

    The JSON of a whole number is its text, and so is the only column of DELIMITED, unless it has quotes.
    """
    form = options.get("KEY_FORMAT")
    word = "KAFKA" if form is None else str(form).upper()
    if word == "KAFKA" or (word == "NONE" and kind is None):
        return
    if word in ("JSON", "DELIMITED") and (kind is None or kind.is_integer() or word == "DELIMITED"):
        return
    if word == "NONE":
        raise error_at(form, "KEY_FORMAT='NONE' is for messages without a key: declare no KEY column")
    more = ", and JSON or DELIMITED of a whole number" if word == "JSON" else ""
    raise error_at(
        form, f"KEY_FORMAT must be KAFKA (text){more}, got {form}; others are for Python, with key="
    )


def _format(options: Options) -> tuple[str, str]:
    word = options.get("VALUE_FORMAT") or options.get("FORMAT")
    form = "JSON" if word is None else str(word).upper()
    if form not in _FORMATS:
        assert word is not None
        raise error_at(
            word,
            f"VALUE_FORMAT must be one of {', '.join(_FORMATS)}, got {word}; for others write the stream in "
            "Python, with value=",
        )
    delimiter = options.get("VALUE_DELIMITER")
    if delimiter is None:
        return form, ","
    sign = _DELIMITERS.get(str(delimiter).upper(), str(delimiter))
    if form != "DELIMITED" or len(sign) != 1:
        raise SqlError(
            "VALUE_DELIMITER is one character, of VALUE_FORMAT='DELIMITED'", delimiter.start, delimiter.end
        )
    return form, sign

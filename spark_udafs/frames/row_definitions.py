"""Tables of sketches read back from files that keep no metadata: ORC, JSON, CSV.

Spark keeps a column's metadata in Parquet, Delta and its own catalog alone. Each row of a table holds its
definition as text in the column `DEFINED` (`schema.definition_text`). The metadata is rebuilt from this text,
and columns are cast to the types of the definition, because JSON and CSV hold bytes as Base64 and times as
text. The text leaves out the questions that aggregates answer, such as the `k` of a top-k; defaults apply.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    DataType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    _parse_datatype_json_string,
)

from ...operators.definition.aggregate import METADATA, Aggregate, arrow_type
from ...operators.families import FAMILIES, family
from ...operators.table.schema import END, START, definition_text, table_schema
from ...operators.table.spark_footer import DEFINED, KEY_TYPE, ROWS, notes_of
from ...operators.table.windows import declared_windows
from ...operators.windows.calendar import calendar_windows
from ...operators.windows.count import ByCountTable
from ...operators.windows.cumulate import CumulateTable
from ...operators.windows.durations import microseconds
from ...operators.windows.hopping import regular_windows
from ...operators.windows.session import SessionTable
from ...operators.windows.sliding import SlidingTable
from ...operators.windows.table import AllTime, TableWindows
from ...sketches.core.protocol import SketchError
from ..merge.column_codecs import quoted, spark_type
from ..slow_starts import patiently


def described(frame: DataFrame) -> DataFrame:
    """Restore the definitions in a table's metadata from the text in its first row.

    Streams and DataFrames that have metadata, or no such text, are returned unchanged. Raises `SketchError`
    for text that isn't a table's definition.
    """
    if DEFINED not in frame.columns or frame.isStreaming:
        return frame
    if any(METADATA.decode() in field.metadata or KEY_TYPE in field.metadata for field in frame.schema):
        return frame
    if any(f'"{METADATA.decode()}' in field.metadata.get("comment", "") for field in frame.schema):
        return frame
    texts = frame.select(DEFINED).where(F.col(DEFINED).isNotNull()).limit(1)
    first = patiently("the definition of a table", texts.collect)
    if not first:
        return frame
    text = str(first[0][0])
    schema = schema_of_text(text, [name for name in frame.columns if name not in (START, END, DEFINED)])
    windows = declared_windows(schema)
    kinds = {field.name: field.dataType for field in frame.schema}
    columns = [_typed(name, kinds[name], schema.field(name).type) for name in (START, END) if name in kinds]
    for field in list(schema)[2:]:
        note = notes_of(field, windows)
        columns.append(_typed(field.name, kinds[field.name], field.type).alias(field.name, metadata=note))
    return frame.select(*columns, F.col(DEFINED).alias(DEFINED, metadata={ROWS: text}))


def _typed(name: str, kind: DataType, wanted: pa.DataType) -> Column:
    """Cast a column to the type of its table; a text column that should be binary is decoded as Base64."""
    return _cast(F.col(quoted(name)), kind, from_arrow_type(spark_type(wanted, name))).alias(name)


_NOT_BASE64 = (
    "streamgauge: this file doesn't hold its sketches as Base64, so they are lost; write it again with "
    "spark.sql.binaryOutputStyle set to BASE64, or as Parquet"
)


def _cast(column: Column, kind: DataType, wanted: DataType) -> Column:
    if kind == wanted:
        return column
    if isinstance(wanted, BinaryType) and isinstance(kind, StringType):
        # By default Spark writes bytes to CSV as UTF-8, which can't be reversed.
        held = F.try_to_binary(column, F.lit("base64"))
        return F.when(column.isNotNull(), F.coalesce(held, F.raise_error(_NOT_BASE64)))
    if isinstance(wanted, StructType) and isinstance(kind, StructType):
        # Spark casts structs by position, and sorts the fields read from JSON by name.
        there = {field.name: field.dataType for field in kind}
        fields = [
            _cast(column[field.name], there[field.name], field.dataType).alias(field.name)
            if field.name in there
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in wanted
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    return column.cast(wanted)


def schema_of_text(text: str, names: list[str]) -> pa.Schema:
    """Return the schema of a table of sketches from the definition `text` in its rows and its column names.

    Raises `SketchError` if the text isn't such a definition.

    >>> schema_of_text('windows of 1m; lang string; users distinct("user", lg_k=12)', ["users", "lang"]).names
    ['window_start', 'window_end', 'lang', 'users']
    """
    try:
        windows, keys, aggregates = _parsed(text, names)
        schema = table_schema(keys, aggregates, windows)
    except (ValueError, SyntaxError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise SketchError(f"{DEFINED}: {text!r} isn't the definition of this table: {error}") from None
    if definition_text(schema) != text:
        raise SketchError(
            f"{DEFINED}: {text!r} isn't a definition of the columns {', '.join(names)}, whose own is "
            f"{definition_text(schema)!r}"
        )
    return schema


def _parsed(
    text: str, names: list[str]
) -> tuple[TableWindows | None, dict[str, pa.DataType], dict[str, Aggregate]]:
    keys: dict[str, pa.DataType] = {}
    aggregates: dict[str, Aggregate] = {}
    left = sorted(names, key=len, reverse=True)
    windows = None
    if not any(text.startswith(f"{name} ") for name in left) or text.startswith(
        ("windows of", "sessions with")
    ):
        words, _, text = text.partition("; ")
        windows = windows_of_text(words)
    while text:
        name = next((one for one in left if text.startswith(f"{one} ")), None)
        if name is None:
            raise ValueError(f"there is no column for {text!r}")
        left.remove(name)
        text = text[len(name) + 1 :]
        call = re.match(r"([a-z_]+)\(", text)
        if call is None or call[1] not in FAMILIES:  # a type such as decimal(9,2)
            kind, _, text = text.partition("; ")
            keys[name] = _key_type(kind)
            continue
        end = _call_end(text)
        of = re.match(r" of (\w+) items", text[end:])
        aggregates[name] = _aggregate(text[:end], None if of is None else of[1])
        text = text[end + (0 if of is None else of.end()) :].removeprefix("; ")
    if left:
        raise ValueError(f"it has no {', '.join(left)}")
    return (
        windows,
        {name: keys[name] for name in names if name in keys},
        {name: aggregates[name] for name in names if name in aggregates},
    )


def _key_type(text: str) -> pa.DataType:
    """Parse a key's type from its Spark name, as stored in a table; a time of day has Arrow's name."""
    if text.startswith("time64["):
        return arrow_type(text)
    kind = _parse_datatype_json_string(text if text[0] == "{" else f'"{text}"')
    if isinstance(kind, TimestampType | TimestampNTZType):
        return pa.timestamp("us", "UTC" if isinstance(kind, TimestampType) else None)
    return to_arrow_type(kind)


def _call_end(text: str) -> int:
    """Return the position at which the first call in a text ends."""
    depth, quote, at = 0, "", 0
    while at < len(text):
        one = text[at]
        if quote:
            at += one == "\\"
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        else:
            depth += (one in "([{") - (one in ")]}")
            if one in ")]}" and not depth:
                return at + 1
        at += 1
    raise ValueError(f"{text!r} is cut off")


def _aggregate(text: str, item_kind: str | None) -> Aggregate:
    """Parse an aggregate written as a Python call; it answers its default question."""
    call: Any = ast.parse(text, mode="eval").body
    column = ast.literal_eval(call.args[0]) if call.args else None
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    line = family(call.func.id)
    named = {*line.inputs, *line.optional}
    inputs = {name: value for name, value in given.items() if name in named}
    params = {name: value for name, value in given.items() if name not in named}
    return Aggregate(call.func.id, column, params, dict(line.answer), inputs, item_kind)


_LENGTH = r"(\d\w*)"
_KINDS = (
    (rf"windows of {_LENGTH} every {_LENGTH}(?: from (-?\w+) on)?", lambda *of: regular_windows(*of)),
    (rf"windows of {_LENGTH}(?: from (-?\w+) on)?", lambda size, offset: regular_windows(size, None, offset)),
    (rf"windows of up to {_LENGTH} that grow by {_LENGTH}", lambda *of: CumulateTable(*of)),
    (rf"windows of {_LENGTH} that end where a group has rows", lambda size: SlidingTable(size)),
    (rf"sessions with a gap of {_LENGTH}", lambda gap: SessionTable(gap)),
)
_CALENDAR = re.compile(
    r"windows of (up to )?(\w+)(?: (?:every|that grow by) (\w+))?(?: from (-?\w+) on)?(?: in (\S+))?"
)
"""Matches windows of months, and windows that begin by the clock of a time zone."""


def windows_of_text(text: str) -> TableWindows:
    """Parse the text of windows. Raises `ValueError` for other text.

    >>> str(windows_of_text("windows of 1h every 15m from 5m on"))
    'windows of 1h every 15m from 5m on'
    >>> str(windows_of_text("windows of 1mo from 2h on in Europe/Helsinki"))
    'windows of 1mo from 2h on in Europe/Helsinki'
    """
    if text == str(AllTime()):
        return AllTime()
    if counted := re.fullmatch(r"windows of (\d+) rows", text):
        return ByCountTable(int(counted[1]))
    if match := _CALENDAR.fullmatch(text):
        grows, size, every, offset, zone = match.groups()
        kind = "cumulate" if grows else "tumbling" if every is None else "hopping"
        if (local := calendar_windows(kind, size, every, offset, zone)) is not None:
            return local.of_table()
    for pattern, windows in _KINDS:
        if match := re.fullmatch(pattern, text):
            made: TableWindows = windows(*(0 if one is None else microseconds(one) for one in match.groups()))
            return made
    raise ValueError(f"{text!r} does not name windows")

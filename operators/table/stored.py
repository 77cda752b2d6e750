"""Tables of sketches from files: Parquet, Arrow IPC, or a folder of either."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...sketches.core.protocol import SketchError
from .merge import group_rows, merge_tables
from .schema import BATCH, DAY, END, START, aggregates_of, from_ipc, keys_of, read_parquet
from .sketch_table import IPC, PARQUET, SketchTable
from .stored_files import StoredFile, bytes_of, exists, files_below, is_folder, opened, stored_at

T = TypeVar("T")
COMPACTED = "day-"
"""The prefix of the names of files into which a run has combined a day's files."""
SOURCES = b"streamgauge.sources"
"""The key in a file's metadata for the names of the files that it was made from."""
_LISTINGS = 5

_SPARK = b"org.apache.spark.version"
"""The key that Spark writes into the metadata of its files."""


def read(path: str | Path) -> pa.Table:
    """Read the table in a file, or the merged tables of all files in a folder, or from an object store.

    Raises `SketchError` if a file doesn't contain a table of sketches, `FileNotFoundError` if there is none.
    """
    return _of_files(path, merged_of)


def read_table(
    path: str | Path,
    since: datetime | None = None,
    until: datetime | None = None,
    keys: Mapping[str, Any] | None = None,
) -> SketchTable:
    """Read a stored table of sketches, or a part of it, from a file or a folder of Parquet or Arrow IPC.

    `since` and `until` select windows that start and end between them. `keys` has the values that groups must
    have, such as ``{"symbol": "ACME"}``; a list means any of several, None the groups without one. Only row
    groups of Parquet that may contain such rows are read, and only the folders of those days
    (``window_date=…``); `compact` writes tables so that these are few.

    Raises `SketchError` for files that aren't tables of sketches or have different definitions,
    `FileNotFoundError` if there are none, and `ValueError` for keys that the table doesn't have.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64, "symbol": pl.String}, time=pl.from_epoch("at"))
    >>> folder = mkdtemp()
    >>> by_symbol = rows.group_by("symbol").tumbling("1m").agg(n=sg.count())
    >>> tester = sg.StreamTester(by_symbol, sinks=[sg.SketchesToParquet(folder)])
    >>> _ = tester.feed([{"at": 1_767_225_600, "symbol": symbol} for symbol in "ABA"])
    >>> _ = tester.finish()
    >>> sg.read_table(folder, keys={"symbol": "A"}).answers()["n"].to_list()
    [2]
    """
    return _of_files(path, lambda files: _table_of(files, since, until, keys))


def _table_of(
    files: list[StoredFile], since: datetime | None, until: datetime | None, keys: Mapping[str, Any] | None
) -> SketchTable:
    """The part of a table that `read_table` reads."""
    schema = schema_in(files[0])
    files = [file for file in files if _on_days(file, since, until)]
    if not files:
        return SketchTable(schema.empty_table())
    own = keys_of(schema)
    if unknown := [key for key in keys or () if key not in own]:
        raise ValueError(f"read_table: {', '.join(unknown)} is not a key of this table; its keys are {own}")
    return SketchTable(merged_of(files, _condition(schema, since, until, keys or {})))


def _condition(
    schema: pa.Schema, since: datetime | None, until: datetime | None, keys: Mapping[str, Any]
) -> pc.Expression | None:
    """The condition for rows of a span and of these groups; None for all rows."""
    wanted = [] if since is None else [pc.field(START) >= _utc(since)]
    wanted += [] if until is None else [pc.field(END) <= _utc(until)]
    for key, value in keys.items():
        values = value if isinstance(value, list | tuple | set) else [value]
        known = pa.array([one for one in values if one is not None], schema.field(key).type)
        matches = pc.field(key).isin(known)
        wanted.append(matches | pc.field(key).is_null() if None in values else matches)
    return reduce(and_, wanted) if wanted else None


def schema_of_stored(path: str | Path) -> pa.Schema:
    """The schema of the table in a file or a folder, by its first file. Raises as `read` does."""
    return _of_files(path, lambda files: schema_in(files[0]))


def read_group_rows(
    path: str | Path,
    since: datetime | None = None,
    until: datetime | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Like `read`, but bytes that aren't a sketch only raise when they are used.

    `since`, `until` and `keys` are as in `read_table`; `columns` names the aggregates to read. Only the parts
    of files that contain these are read.
    """

    def grouped(files: list[StoredFile]) -> pa.Table:
        schema = schema_in(files[0])
        dropped = set() if columns is None else aggregates_of(schema).keys() - columns
        own = [name for name in schema.names if name not in dropped]
        chosen = [file for file in files if _on_days(file, since, until)]
        if not chosen:
            return pa.schema([schema.field(name) for name in own], schema.metadata).empty_table()
        where = _condition(schema, since, until, keys or {})
        names = None if columns is None else own
        tables = [_one(file, where, names) for file in chosen]
        table = group_rows(tables)
        _check_folders(chosen, tables)
        return table

    return _of_files(path, grouped)


def _of_files(path: str | Path, make: Callable[[list[StoredFile]], T]) -> T:
    """Call `make` with a table's files; if a run has compacted them meanwhile, list them again."""
    for _ in range(_LISTINGS - 1):
        files = files_of(path)
        with suppress(FileNotFoundError):
            return make(files)
    return make(files_of(path))


def tables_of(files: Sequence[StoredFile], where: pc.Expression | None = None) -> list[pa.Table]:
    """The tables in files, or the rows of them for which `where` holds."""
    return [_one(file, where) for file in files]


def schema_in(file: StoredFile) -> pa.Schema:
    """The schema of the table in a file; for Parquet, without reading a row."""
    return _one(file, pc.scalar(False)).schema


def days_of(file: StoredFile) -> set[date]:
    """The days (UTC) on which the windows in a file begin."""
    if file.suffix in IPC or START not in pq.read_schema(opened(file)).names:
        starts = _one(file)[START]
    else:
        starts = pq.read_table(opened(file), columns=[START], coerce_int96_timestamp_unit="us")[START]
    days = starts.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return set(pc.unique(days).to_pylist())


def _on_days(file: StoredFile, since: datetime | None, until: datetime | None) -> bool:
    """Whether a file may have windows of a span, by the day in its folder's name."""
    name, _, day = file.parent.name.partition("=")
    if name != DAY:
        return True
    try:
        begins = date.fromisoformat(day)
    except ValueError:
        return True
    return (since is None or begins >= _utc(since).date()) and (until is None or begins <= _utc(until).date())


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def files_of(path: str | Path) -> list[StoredFile]:
    """The file, or the files of all tables in the folder. Raises `FileNotFoundError` if there are none."""
    place = stored_at(path)
    if not exists(place):
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    if not is_folder(place):
        return [place]
    kinds = PARQUET + IPC
    files = [file for file in files_below(place) if file.suffix in kinds]
    if not files:
        raise FileNotFoundError(f"{path}: no file in this folder ends in {', '.join(kinds)}")
    return _without_sources(files)


def _without_sources(files: list[StoredFile]) -> list[StoredFile]:
    """Remove files whose rows are also in a day's file, and which a run is about to delete."""
    gone = set[StoredFile]()
    for day in (file for file in files if file.name.startswith(COMPACTED)):
        origin = day.name.removeprefix(COMPACTED.rstrip("-")).removesuffix(day.suffix)
        if any(one.parent == day.parent and origin in one.name and one != day for one in files):
            gone.update(day.parent / name for name in sources_of(day))
    return [file for file in files if file not in gone]


def sources_of(file: StoredFile) -> list[str]:
    """The names of the files that a Parquet file was compacted from; empty for one that a run wrote."""
    if file.suffix in IPC:
        return []
    notes = pq.read_metadata(opened(file)).metadata or {}
    names: list[str] = json.loads(notes.get(SOURCES, b"[]"))
    return names


def _one(
    file: StoredFile, where: pc.Expression | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of a file for which `where` holds, with all columns or at least these."""
    try:
        if file.suffix in IPC:
            table = from_ipc(bytes_of(file))
        elif (columns is not None or where is not None) and _names_zone(file):
            return read_parquet(opened(file), where, columns)
        elif where is None:
            return read_parquet(opened(file))
        else:
            table = read_parquet(opened(file))
        return table if where is None else table.filter(where)
    except (SketchError, pa.ArrowException) as error:
        raise SketchError(f"{file}: {error}") from None


def _names_zone(file: StoredFile) -> bool:
    """Whether a file's times can be compared directly; Spark's have neither zone nor statistics.

    False for a table without windows.
    """
    columns = pq.read_schema(opened(file))
    if START not in columns.names:
        return False
    kind = columns.field(START).type
    return not pa.types.is_timestamp(kind) or kind.tz is not None


def _columns_in(file: StoredFile) -> tuple[str, ...]:
    """The parts of the names of a file's folders that are keys: all except the day and the batch."""
    said = (part for part in file.parts[:-1] if "=" in part)
    return tuple(part for part in said if part.partition("=")[0] not in (DAY, BATCH))


def _is_spark_s(file: StoredFile) -> bool:
    return file.suffix in PARQUET and _SPARK in (pq.read_metadata(opened(file)).metadata or {})


def merged_of(files: Sequence[StoredFile], where: pc.Expression | None = None) -> pa.Table:
    """The tables in files, or the rows of them for which `where` holds, merged.

    Raises `SketchError` for different definitions, and if groups differ only in the names of folders.
    """
    tables = tables_of(files, where)
    table = merge_tables(tables)
    _check_folders(files, tables)
    return table


def _check_folders(files: Sequence[StoredFile], tables: Sequence[pa.Table]) -> None:
    """Raise `SketchError` if Spark wrote a key into the names of folders and omitted it from the files.

    Folders by day, or by other properties of windows or keys, are not a problem.
    """
    folders = [_columns_in(file) for file in files]
    if len({*folders}) < 2 or not any(map(_is_spark_s, files)):
        return
    names = [START, END, *keys_of(tables[0].schema)]
    seen: dict[tuple[str, ...], list[pl.DataFrame]] = {}
    for folder, table in zip(folders, tables):
        seen.setdefault(folder, []).append(pl.DataFrame(table.select(names)))
    if pl.concat(pl.concat(parts).unique() for parts in seen.values()).is_duplicated().any():
        columns = sorted({part.partition("=")[0] for folder in folders for part in folder})
        raise SketchError(
            f"{', '.join(columns)}: Spark has written this column into names of folders, which only Spark "
            "reads, and without it different groups are the same. Bring the table from there, "
            "as_table(spark.read.parquet(...)), or write it without partitionBy"
        )


def moment(text: str | None) -> datetime | None:
    """An option's time: ISO 8601, in UTC unless it has a zone. Raises `ValueError` if it is not a time.

    >>> moment("2026-06-01T12:00").isoformat()
    '2026-06-01T12:00:00+00:00'
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write 2026-06-01T12:00 (UTC), or add a zone") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)

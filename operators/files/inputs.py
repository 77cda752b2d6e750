"""Inputs that can be sketched in this process: frames, Arrow tables and readers, and files."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl
from .bad_lines import bad_csv_line, bad_json_line, without_advice

ROWS = 1 << 18
"""The most rows in a piece of a frame."""

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv")
_LINES, _IPC = (".jsonl", ".ndjson"), (".arrow", ".ipc", ".feather")
ENDINGS = (*_PARQUET, *_CSV, *_LINES, *_IPC)
_COMPRESSED = (".gz", ".zst")
_INFERRED_ROWS = 10_000
_LONGEST_REASON = 500


class InputError(StreamgaugeError, ValueError):
    """A file or frame can't be read, or its columns are not the stream's; the message names it."""


@dataclass(frozen=True)
class RowInput:
    """One frame or file.

    `name` is its name in messages, `rows` returns its number of rows (None: unknown until it is read), `lazy`
    returns it with the columns of `overrides` parsed as these types, if its format has no types of its own.
    `lines` is the file's path if each of its lines is a message that a decoder can read. With `whole_lines`,
    all its columns are read, because Polars only then notices lines with too many values. `bad_line` takes
    the types and the reason why reading failed, and describes the first line at fault; empty if unknown.
    """

    name: str
    rows: Callable[[], int | None]
    lazy: Callable[[Mapping[str, Any]], pl.LazyFrame]
    lines: Path | None = None
    whole_lines: bool = False
    bad_line: Callable[[Mapping[str, Any], str], str] = lambda types, reason: ""

    def columns(self, overrides: Mapping[str, Any]) -> pl.Schema:
        """Its columns. Raises `InputError`."""
        with self.naming(overrides):
            return self.lazy(overrides).collect_schema()

    @contextmanager
    def naming(self, types: Mapping[str, Any]) -> Iterator[None]:
        """Name the file or frame, and its bad line, in errors."""
        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = self.bad_line(types, str(error)) or without_advice(str(error))
            shown = " ".join(reason.split())[:_LONGEST_REASON]
            raise InputError(f"{self.name} can't be read: {shown}") from error


def inputs_of(data: Any) -> list[RowInput]:
    """The frames and files that `data` names, files sorted by name.

    Raises `TypeError` for data without rows, and `InputError` for files that don't exist or have an unknown
    type.

    >>> [one.name for one in inputs_of(pl.DataFrame({"user": ["ann"]}))]
    ['the frame']
    """
    if isinstance(data, str | Path):
        return _files(data)
    if isinstance(data, pl.DataFrame):
        return [RowInput("the frame", lambda: data.height, lambda _: data.lazy())]
    if isinstance(data, pl.LazyFrame):
        return [RowInput("the frame", _unknown, lambda _: data)]
    if type(data).__module__.partition(".")[0] == "pandas":
        frame = pl.from_pandas(data)
        return [RowInput("the frame", lambda: frame.height, lambda _: frame.lazy())]
    if hasattr(data, "__arrow_c_stream__"):
        table = pl.DataFrame(data)
        return [RowInput("the table", lambda: table.height, lambda _: table.lazy())]
    if isinstance(data, Sequence) and not isinstance(data, bytes) and data:
        return [one for item in data for one in inputs_of(item)]
    raise TypeError(
        "over takes a frame (Polars, pandas, Arrow), a file's name or pattern, or a list of these, got "
        f"{data!r}"
    )


def _unknown() -> None:
    return None


def reusable(data: Any) -> Any:
    """The same data in a form that can be read more than once: an Arrow stream is loaded into memory."""
    if isinstance(data, list | tuple):
        return [reusable(one) for one in data]
    framed = isinstance(data, pl.DataFrame) or type(data).__module__.partition(".")[0] == "pandas"
    return pl.DataFrame(data) if hasattr(data, "__arrow_c_stream__") and not framed else data


def _files(place: str | Path) -> list[RowInput]:
    text = str(place)
    if "://" in text:
        return [_file(text)]
    path = Path(text).expanduser()
    if path.is_dir():
        paths = sorted(str(one) for one in path.rglob("*") if one.is_file() and _ending(one.name))
        problem = f"{text} holds no file that ends in {', '.join(ENDINGS)}"
    elif path.exists():
        paths, problem = [str(path)], ""
    else:
        paths = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob takes no whole path
        problem = f"there is no file {text}" if not glob.has_magic(text) else f"no file matches {text}"
    if not paths:
        raise InputError(f"{problem}; the current folder is {Path.cwd()}")
    return [_file(one) for one in paths]


def _ending(name: str) -> str:
    stem = name.lower()
    for compressed in _COMPRESSED:
        stem = stem.removesuffix(compressed)
    return next((ending for ending in ENDINGS if stem.endswith(ending)), "")


def _file(name: str) -> RowInput:
    ending = _ending(name.partition("?")[0])
    if ending in _PARQUET:
        hive = any("=" in part for part in name.split("/")[:-1])

        def parquet(_: object = None) -> pl.LazyFrame:
            return pl.scan_parquet(name, hive_partitioning=hive, glob=False)

        def rows() -> int:
            with source.naming({}):
                return int(parquet().select(pl.len()).collect().item())

        source = RowInput(name, rows, parquet)
        return source
    if ending in _IPC:
        return RowInput(name, _unknown, lambda _: pl.scan_ipc(name, glob=False))
    lines = None if "://" in name else Path(name)
    if ending in _CSV:
        separator = "\t" if ending == ".tsv" else ","

        def bad_csv(types: Mapping[str, Any], reason: str) -> str:
            return bad_csv_line(lines, separator, types, reason) if lines else ""

        return RowInput(name, _unknown, partial(_csv, name, separator), None, True, bad_csv)
    if ending in _LINES:

        def bad_json(types: Mapping[str, Any], reason: str) -> str:
            return bad_json_line(lines, types) if lines else ""

        return RowInput(
            name,
            _unknown,
            lambda overrides: pl.scan_ndjson(
                name, schema_overrides=dict(overrides), infer_schema_length=_INFERRED_ROWS
            ),
            lines,
            bad_line=bad_json,
        )
    raise InputError(
        f"the extension of {name} is unknown; it must be {', '.join(ENDINGS)}; text files may add "
        f"{' or '.join(_COMPRESSED)}"
    )


def _csv(name: str, separator: str, overrides: Mapping[str, Any]) -> pl.LazyFrame:
    """The rows of a CSV file; columns without a type in `overrides` are text, unless none has a type."""
    scan = partial(
        pl.scan_csv,
        name,
        separator=separator,
        try_parse_dates=True,
        infer_schema_length=_INFERRED_ROWS,
        glob=False,
    )
    if not overrides:
        return scan()
    types = dict.fromkeys(scan().collect_schema(), pl.String) | dict(overrides)
    return scan(schema_overrides=types)


def pieces(source: RowInput, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """The rows of an input in order, with the columns of a stream's source and their types.

    Raises `InputError` for columns that are missing or can't be converted without loss.
    """
    with source.naming(schema):
        frame = source.lazy(schema)
        there = frame.collect_schema()
        frame = frame.select(_column(source.name, name, there, kind) for name, kind in schema.items())
        reading = pl.QueryOptFlags(projection_pushdown=not source.whole_lines)
        for batch in frame.collect_batches(chunk_size=ROWS, maintain_order=True, optimizations=reading):
            yield from batch.iter_slices(ROWS)


def _column(name: str, column: str, there: Mapping[str, Any], kind: Any) -> pl.Expr:
    """A column as a stream's source declares it."""
    if column not in there:
        raise InputError(f"{name} has no column {column!r}; it has {', '.join(there) or 'none'}")
    actual = there[column]
    if actual == kind:
        return pl.col(column)
    if not _is_lossless(actual, kind):
        raise InputError(
            f"{name}: column {column!r} is {actual}, and the stream expects {kind}, as in its first file "
            "or its schema; convert the column first"
        )
    return pl.col(column).cast(kind)


def _is_lossless(actual: Any, kind: Any) -> bool:
    """Whether a strict cast preserves each value, or fails; texts are not parsed here."""
    if actual == pl.Null:
        return True
    if actual.is_integer():
        return bool(kind.is_integer() or (kind.is_float() and kind != pl.Float32))
    if actual.is_float():
        return bool(kind == pl.Float64)
    if isinstance(actual, pl.Categorical | pl.Enum):
        return bool(kind == pl.String)
    if isinstance(actual, pl.Date):
        return isinstance(kind, pl.Datetime) and kind.time_zone is None
    if isinstance(actual, pl.Datetime) and isinstance(kind, pl.Datetime):
        units = ("ms", "us", "ns")
        finer = units.index(kind.time_unit) >= units.index(actual.time_unit)
        return finer and (actual.time_zone is None) == (kind.time_zone is None)
    if isinstance(actual, pl.List) and isinstance(kind, pl.List):
        return actual.inner == kind.inner or _is_lossless(actual.inner, kind.inner)
    return False

"""An extract of a catalogue, which a process reads once, when it first needs it, and stores as arrays."""

from __future__ import annotations

import csv
import threading
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ...recordings.compressed_files import INCOMPLETE, opened
from .classes import classes_of
from .columns import ExtractColumns
from .zones import Numbers, Zones, zone_keys

_PARQUET = b"PAR1"
_HEADER_WITHIN = 200
"""The header is within this many lines: Gaia's exports begin with many comments, TNS's with a date."""
_LONGEST_LINE = 1 << 20
_BLOCK = 4 << 20
_ROWS = 65_536
_LONGEST_NAME = 100
_lock = threading.Lock()


class Entry(NamedTuple):
    """An extract's data about an object."""

    name: str
    type: str | None
    z: float | None


@dataclass(frozen=True, eq=False)
class Extract:
    """The objects of a file: positions in zones, names, and a number for each distinct type.

    10 million rows take about half a gigabyte, and less than one while they are read (`bench/catalogs.py`).
    `unplaced` is the number of rows without a position, which are left out.
    """

    path: str
    zones: Zones
    names: list[pa.Array]
    types: list[str | None]
    type_numbers: npt.NDArray[np.int32]
    redshifts: npt.NDArray[np.float32] | None
    unplaced: int = 0
    _starts: Numbers = field(init=False)
    _classes: npt.NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        sizes = [len(chunk) for chunk in self.names]
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes]))
        object.__setattr__(self, "_classes", np.array([classes_of(one) for one in self.types], np.uint8))

    def __len__(self) -> int:
        return len(self.type_numbers)

    @property
    def label(self) -> str:
        """Its name in reasons: the file's name without extensions."""
        return label_of(self.path)

    def classes(self, rows: Numbers) -> npt.NDArray[np.uint8]:
        """Return the classes of rows, as bits of `CLASSES`."""
        return self._classes[self.type_numbers[rows]] if len(rows) else np.empty(0, np.uint8)

    def entry(self, row: int) -> Entry:
        """Return the data of a row."""
        chunk = int(np.searchsorted(self._starts, row, "right")) - 1
        name = self.names[chunk][row - int(self._starts[chunk])].as_py()
        name = f"Gaia {name}" if isinstance(name, int) else name
        z = None if self.redshifts is None else float(self.redshifts[row])
        return Entry(_printable(name), self.type(row), None if z is None or np.isnan(z) else z)

    def type(self, row: int) -> str | None:
        """Return the type of a row."""
        kind = self.types[self.type_numbers[row]]
        return None if kind is None else _printable(kind)


def label_of(path: str) -> str:
    """Return a file's name without its extensions.

    >>> label_of("extracts/gaia.csv.gz")
    'gaia'
    """
    return _printable(Path(path).name.split(".")[0])


_kept: dict[str, tuple[tuple[int, int, int], Extract]] = {}
"""The extracts that this process has read, by path; only the last version of a file."""


def check_extract(path: str) -> None:
    """Read the beginning of a file. Raises `OSError` or `ValueError` if it isn't an extract."""
    source = _Source.of(path)
    columns = ExtractColumns.of(source.names)
    for at, batch in enumerate(islice(_batches(source, columns), 1)):
        _checked(path, columns, columns.rows(batch.head(1000)), at)


def extract(path: str) -> Extract:
    """Return the extract in a file; this process reads it once, unless it changes.

    Raises `OSError` for a file that can't be read, `ValueError` naming the first wrong row.
    """
    stat = Path(path).stat()
    stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
    with _lock:
        known = _kept.get(path)
        if known is None or known[0] != stamp:
            # Two versions of a large extract would not fit into memory.
            known = None
            _kept.pop(path, None)
            known = _kept[path] = stamp, _read(path)
        return known[1]


def _read(path: str) -> Extract:
    source = _Source.of(path)
    columns = ExtractColumns.of(source.names)
    numbers: dict[str | None, int] = {}
    # The arrays grow in place: parts that are concatenated at the end would be in memory twice.
    keys, dec, types, redshifts = array("d"), array("d"), array("i"), array("f")
    names: list[pa.Array] = []
    read, unplaced = 0, 0
    for batch in _batches(source, columns):
        rows = _checked(path, columns, columns.rows(batch), read)
        read += batch.height
        unplaced += batch.height - rows.height
        if not rows.height:
            continue
        keys.frombytes(zone_keys(rows["ra"].to_numpy(), rows["dec"].to_numpy()).tobytes())
        dec.frombytes(rows["dec"].to_numpy().tobytes())
        kinds = rows["type"].unique().to_list()
        coded = {kind: numbers.setdefault(kind, len(numbers)) for kind in kinds}
        as_number = rows["type"].replace_strict(coded, return_dtype=pl.Int32) if coded else rows["type"]
        types.frombytes(as_number.to_numpy().astype(np.int32).tobytes())
        if columns.z is not None:
            redshifts.frombytes(rows["z"].fill_null(float("nan")).to_numpy().tobytes())
        names.append(_as_arrow(rows["name"], columns.of_gaia))
    # Memory that reading used is released before sorting needs it.
    pa.default_memory_pool().release_unused()
    placed = Zones.sort(np.frombuffer(keys, np.float64), np.frombuffer(dec, np.float64))
    return Extract(
        path,
        placed,
        names,
        list(numbers) or [None],
        np.frombuffer(types, np.int32),
        np.frombuffer(redshifts, np.float32) if columns.z is not None else None,
        unplaced,
    )


def _as_arrow(names: pl.Series, of_gaia: bool) -> pa.Array:
    """Convert names for storage: Gaia's to numbers, which take a third of the memory."""
    if of_gaia:
        numbers = names.cast(pl.Int64, strict=False)
        if not numbers.null_count():
            return numbers.to_arrow()
    large = names.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, letters = large.cast(pa.string()).buffers()
    # Copies are exactly as large as their content: Polars' buffers have spare capacity.
    exact = [None if one is None else pa.py_buffer(one.to_pybytes()) for one in (offsets, letters)]
    return pa.StringArray.from_buffers(len(large), *exact)


def _checked(path: str, columns: ExtractColumns, rows: pl.DataFrame, read: int) -> pl.DataFrame:
    """Return the rows that have a position. Raises `ValueError` for a wrong one."""
    wrong = rows["position"] & ~(
        rows["ra"].is_between(-360, 360) & rows["dec"].is_between(-90, 90)
    ).fill_null(False)
    if (at := wrong.arg_max()) is not None and wrong[at]:
        raise ValueError(
            f"{path}: row {read + at + 1}: {columns.ra} and {columns.dec} must be degrees, or "
            "12:22:54.9 and +15:49:20"
        )
    return rows.filter("position")


class _Source(NamedTuple):
    """A file: Parquet, or text with `skip` lines before the header."""

    path: str
    names: list[str]
    separator: str = ""
    skip: int = 0

    @classmethod
    def of(cls, path: str) -> _Source:
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(2, "No such file", path)
        try:
            with opened(file) as stream:
                if stream.read(4) == _PARQUET:
                    return cls(path, _parquet_file(path).schema_arrow.names)
            return cls._of_text(file)
        except (pa.ArrowException, UnicodeDecodeError, *INCOMPLETE) as error:
            raise ValueError(f"{path} can't be read: {error}") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def _of_text(cls, file: Path) -> _Source:
        first = ""
        with opened(file) as stream:
            for skip in range(_HEADER_WITHIN):
                line = stream.readline(_LONGEST_LINE).decode("utf-8").rstrip("\r\n")
                if not line:
                    break
                if line.startswith("#"):
                    continue
                first = first or line
                for separator in (",", "\t", ";", "|"):
                    names = next(csv.reader([line], delimiter=separator))
                    try:
                        ExtractColumns.of(names)
                    except ValueError:
                        continue
                    return cls(str(file), names, separator, skip)
        ExtractColumns.of(next(csv.reader([first]), []))
        raise AssertionError("a header is among the lines")


def _parquet_file(path: str) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(path, buffer_size=_BLOCK)


def _batches(source: _Source, columns: ExtractColumns) -> Iterator[pl.DataFrame]:
    """Read the needed columns, some ten thousand rows at a time."""
    for batch in (
        _parquet_batches(source, columns) if not source.separator else _text_batches(source, columns)
    ):
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield frame


def _parquet_batches(source: _Source, columns: ExtractColumns) -> Iterator[pa.RecordBatch]:
    try:
        yield from _parquet_file(source.path).iter_batches(_ROWS, columns=columns.names)
    except pa.ArrowException as error:
        raise ValueError(f"{source.path} can't be read: {error}") from None


def _text_batches(source: _Source, columns: ExtractColumns) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as text

    with opened(Path(source.path)) as stream:
        try:
            yield from text.open_csv(
                stream,
                text.ReadOptions(
                    block_size=_BLOCK, skip_rows=source.skip, use_threads=False, encoding="utf8"
                ),
                text.ParseOptions(delimiter=source.separator),
                text.ConvertOptions(
                    column_types=dict.fromkeys(columns.names, pa.string()),
                    include_columns=columns.names,
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowException, *INCOMPLETE) as error:
            raise ValueError(f"{source.path} can't be read: {error}") from None


def _printable(text: str | None) -> str:
    """Make a name printable: on one line, and not too long."""
    shown = "".join(letter if letter.isprintable() else " " for letter in (text or "")[: _LONGEST_NAME + 1])
    return shown if len(shown) <= _LONGEST_NAME else shown[:_LONGEST_NAME] + "…"

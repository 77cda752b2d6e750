"""Split Parquet files into tasks that read only the columns and row groups they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from polars.selectors import by_name
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

TASK_BYTES = 64 * 1024 * 1024
"""About how many uncompressed bytes of row groups a task reads."""
BATCH_ROWS = 1 << 17
"""How many rows are read at a time."""


@dataclass(frozen=True)
class Piece:
    """Consecutive row groups of one file, by number, and the rows of the file that they hold.

    `bytes` is the size of the columns to read.
    """

    fragment: ds.ParquetFileFragment
    row_groups: range
    rows: range
    bytes: int

    @property
    def path(self) -> str:
        """The file."""
        return str(self.fragment.path)

    def and_next(self, other: Piece) -> Piece | None:
        """Join the two pieces if `other` follows in the same file; otherwise return None."""
        if other.path != self.path or other.row_groups.start != self.row_groups.stop:
            return None
        row_groups = range(self.row_groups.start, other.row_groups.stop)
        rows = range(self.rows.start, other.rows.stop)
        return Piece(self.fragment, row_groups, rows, self.bytes + other.bytes)


def files_of(path: str) -> list[str]:
    """Return a file, or all files in a folder and its subfolders, oldest first.

    As in Spark, names that begin with ``_`` or ``.`` are skipped. Raises `FileNotFoundError`.
    """
    address = path if "://" in path else str(Path(path.removeprefix("file:")).absolute())
    filesystem, place = FileSystem.from_uri(address)
    scheme = "" if filesystem.type_name == "local" else f"{address.partition('://')[0]}://"
    info = filesystem.get_file_info(place)
    if info.type == FileType.NotFound:
        raise FileNotFoundError(f"streamgauge-parquet: there is no file or folder {path}")
    there = [info]
    if not info.is_file:
        there = filesystem.get_file_info(FileSelector(place, recursive=True))

    def shown(one: FileInfo) -> bool:
        inner = PurePosixPath(one.path).relative_to(place).parts
        return one.is_file and not any(part[0] in "_." and "=" not in part for part in inner)

    return [
        scheme + one.path for one in sorted(filter(shown, there), key=lambda one: (one.mtime_ns, one.path))
    ]


def dataset_of(files: Sequence[str], columns: pa.Schema) -> ds.Dataset:
    """Return the files as one dataset, with folders named ``key=value`` as columns.

    `columns` are the columns to read; a file that lacks one yields nulls.
    """
    filesystem, _ = FileSystem.from_uri(files[0])
    factory = ds.FileSystemDatasetFactory(
        filesystem,
        [FileSystem.from_uri(file)[1] for file in files],
        ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")),
        ds.FileSystemFactoryOptions(partitioning=ds.HivePartitioning.discover()),
    )
    schema = factory.inspect()
    for field in columns:
        if field.name not in schema.names:
            schema = schema.append(field)
    return factory.finish(schema)


def pieces(dataset: ds.Dataset, where: ds.Expression | None, columns: Sequence[str]) -> list[Piece]:
    """Return the row groups that may contain matching rows, by the statistics in the files' footers.

    Their sizes count only `columns`.
    """
    pieces_ = []
    for fragment in dataset.get_fragments(filter=where):
        kept = [fragment] if where is None else fragment.split_by_row_group(where, dataset.schema)
        groups = {group.id for part in kept for group in part.row_groups}
        pieces_ += [piece for piece in _groups(fragment, columns) if piece.row_groups.start in groups]
    return pieces_


def _groups(fragment: ds.ParquetFileFragment, columns: Sequence[str]) -> Iterator[Piece]:
    """Return each row group of a file; a row counts as at least eight bytes.

    Processing a row takes time, however well it is compressed.
    """
    file = fragment.metadata
    paths = [file.schema.column(at).path for at in range(file.num_columns)]
    read = [at for at, path in enumerate(paths) if path in columns or path.partition(".")[0] in columns]
    first = 0
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        size = sum(group.column(at).total_uncompressed_size for at in read)
        rows = range(first, first + group.num_rows)
        yield Piece(fragment, range(number, number + 1), rows, max(size, 8 * len(rows)))
        first = rows.stop


def tasks(pieces: Sequence[Piece], size: int = TASK_BYTES) -> list[tuple[Piece, ...]]:
    """Group consecutive pieces into tasks of `size` bytes, with at least one piece each.

    A task's adjacent pieces of one file are joined, so that the file is opened once.
    """
    cut: list[tuple[Piece, ...]] = []
    held: list[Piece] = []
    for piece in pieces:
        joined = held[-1].and_next(piece) if held else None
        held[-1 if joined else len(held) :] = [joined or piece]
        if sum(one.bytes for one in held) >= size:
            cut.append(tuple(held))
            held = []
    return [*cut, tuple(held)] if held else cut


def batches(
    piece: Piece, schema: pa.Schema, columns: Sequence[str], where: ds.Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of a piece's rows that satisfy `where`."""
    if where is None and _numbers(piece.fragment, columns):
        # A selector, because plain names may be read as patterns.
        scanned = pl.scan_parquet(piece.path, glob=False, hive_partitioning=False).select(by_name(*columns))
        rows = scanned.slice(piece.rows.start, len(piece.rows)).collect().to_arrow()
        read = rows.select(columns).to_batches(max_chunksize=BATCH_ROWS)
    else:
        fragment = piece.fragment.subset(row_group_ids=list(piece.row_groups))
        read = fragment.scanner(
            schema=schema, columns=list(columns), filter=where, batch_size=BATCH_ROWS, use_threads=False
        ).to_batches()
    for batch in read:
        if batch.num_rows:
            yield batch


def _numbers(fragment: ds.ParquetFileFragment, columns: Sequence[str]) -> bool:
    """Whether these are numeric columns of a local file.

    Polars and Arrow read numbers alike, but Polars decompresses Snappy in two thirds of Arrow's time.
    """
    if not isinstance(fragment.filesystem, LocalFileSystem):
        return False
    there = fragment.physical_schema
    folders = ds.get_partition_keys(fragment.partition_expression)
    kinds = [there.field(name).type for name in columns if name not in folders and name in there.names]
    return len(kinds) == len(columns) and all(
        pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind) for kind in kinds
    )

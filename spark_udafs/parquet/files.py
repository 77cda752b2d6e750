"""Parquet files cut into tasks, of which only the columns and row groups are read that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

TASK_BYTES = 64 * 1024 * 1024
"""About how many bytes of row groups a task reads, before decompression."""
BATCH_ROWS = 1 << 17
"""How many rows are read at a time."""


@dataclass(frozen=True)
class Piece:
    """Row groups of one file; `of` is how many the file has."""

    fragment: ds.ParquetFileFragment
    bytes: int

    @property
    def path(self) -> str:
        """The file."""
        return str(self.fragment.path)

    @property
    def row_groups(self) -> list[int]:
        """The numbers of its row groups."""
        return [group.id for group in self.fragment.row_groups]


def files_of(path: str) -> list[str]:
    """A file, or those of a folder and the folders in it, the oldest first.

    Names that begin with ``_`` or ``.`` are no rows, as in Spark. Raises `FileNotFoundError`.
    """
    address = path if "://" in path else str(Path(path.removeprefix("file:")).absolute())
    filesystem, place = FileSystem.from_uri(address)
    scheme = "" if filesystem.type_name == "local" else f"{address.partition('://')[0]}://"
    found = filesystem.get_file_info(place)
    if found.type == FileType.NotFound:
        raise FileNotFoundError(f"streamgauge-parquet: there is no file or folder {path}")
    there = [found]
    if not found.is_file:
        there = filesystem.get_file_info(FileSelector(place, recursive=True))

    def shown(one: FileInfo) -> bool:
        inner = PurePosixPath(one.path).relative_to(place).parts
        return one.is_file and not any(part[0] in "_." and "=" not in part for part in inner)

    return [
        scheme + one.path for one in sorted(filter(shown, there), key=lambda one: (one.mtime_ns, one.path))
    ]


def dataset_of(files: Sequence[str], columns: pa.Schema) -> ds.Dataset:
    """The files as one dataset, with folders named ``key=value`` as columns.

    `columns` are those to be read; files that lack one have nulls there.
    """
    filesystem, _ = FileSystem.from_uri(files[0])
    found = ds.FileSystemDatasetFactory(
        filesystem,
        [FileSystem.from_uri(file)[1] for file in files],
        ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")),
        ds.FileSystemFactoryOptions(partitioning=ds.HivePartitioning.discover()),
    )
    schema = found.inspect()
    for field in columns:
        if field.name not in schema.names:
            schema = schema.append(field)
    return found.finish(schema)


def pieces(dataset: ds.Dataset, where: ds.Expression | None) -> list[Piece]:
    """The row groups that may hold rows of interest, by the statistics in the files' footers."""
    found = []
    for fragment in dataset.get_fragments(filter=where):
        groups = fragment.row_groups
        if where is not None:
            kept = fragment.split_by_row_group(filter=where, schema=dataset.schema)
            groups = [group for part in kept for group in part.row_groups]
        found += [Piece(fragment.subset(row_group_ids=[group.id]), group.total_byte_size) for group in groups]
    return found


def tasks(found: Sequence[Piece], size: int = TASK_BYTES) -> list[tuple[Piece, ...]]:
    """Pieces that follow each other, `size` bytes of them a task and at least one piece."""
    cut: list[tuple[Piece, ...]] = []
    held: list[Piece] = []
    for piece in found:
        held.append(piece)
        if sum(one.bytes for one in held) >= size:
            cut.append(tuple(held))
            held = []
    return [*cut, tuple(held)] if held else cut


def batches(
    piece: Piece, schema: pa.Schema, columns: Sequence[str], where: ds.Expression | None
) -> Iterator[pa.RecordBatch]:
    """A piece's rows for which `where` holds, of these columns."""
    scanner = piece.fragment.scanner(
        schema=schema, columns=list(columns), filter=where, batch_size=BATCH_ROWS, use_threads=False
    )
    for batch in scanner.to_batches():
        if batch.num_rows:
            yield batch

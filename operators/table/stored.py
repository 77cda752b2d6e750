"""Tables of sketches from files: Parquet, Arrow IPC, or a folder of either."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ...sketches.core.protocol import SketchError
from .merge import merge
from .schema import END, START, from_ipc, read_parquet

_PARQUET = (".parquet", ".pq")
_IPC = (".arrow", ".arrows", ".ipc")


def read(path: Path, since: datetime | None = None, until: datetime | None = None) -> pa.Table:
    """The table in a file, or those of all files in a folder, merged; of it the windows in a span of time.

    A window is in the span if it starts at `since` or later and ends at `until` or earlier. Raises
    `SketchError` if a file doesn't hold a table of sketches, `FileNotFoundError` if there is none.
    """
    table = merge([_one(file) for file in files_of(path)])
    kept = table
    if since is not None:
        kept = kept.filter(pc.greater_equal(kept[START], since))
    if until is not None:
        kept = kept.filter(pc.less_equal(kept[END], until))
    if table.num_rows and not kept.num_rows:
        first, last = pc.min(table[START]).as_py(), pc.max(table[END]).as_py()
        raise SketchError(f"{path}: no window lies in that span; there are windows from {first} to {last}")
    return kept


def files_of(path: Path) -> list[Path]:
    """The file, or those of all tables in the folder. Raises `FileNotFoundError` if there is none."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return [path]
    kinds = _PARQUET + _IPC
    files = sorted(f for f in path.rglob("*") if f.suffix in kinds and f.name[0] not in "._")
    if not files:
        raise FileNotFoundError(f"{path}: no file in this folder ends in {', '.join(kinds)}")
    return files


def _one(file: Path) -> pa.Table:
    try:
        return from_ipc(file.read_bytes()) if file.suffix in _IPC else read_parquet(file)
    except (SketchError, pa.ArrowException) as error:
        raise SketchError(f"{file}: {error}") from None


def moment(text: str | None) -> datetime | None:
    """An option's time: ISO 8601, UTC where it names no zone. Raises `ValueError` if it is not a time.

    >>> moment("2026-06-01T12:00").isoformat()
    '2026-06-01T12:00:00+00:00'
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write 2026-06-01T12:00 (UTC), or add a zone") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

"""Atomic file writes: a file appears completely or not at all, for readers and after a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A hidden file beside `path` to write to; it replaces `path` at the end of the block.

    By then it is on the disk, so it survives a power cut if anything that is written later, and relies on it,
    does. If the block raises, `path` is unchanged, and nothing is left beside it. The folder must exist.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "state.json"
    >>> with whole_file(path) as unfinished:
    ...     _ = unfinished.write_text("{}")
    ...     path.exists()
    False
    >>> path.read_text()
    '{}'
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        sync(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's entries, so that they survive a power cut. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

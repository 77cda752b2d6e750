"""Files that are there as a whole or not at all, for readers and after a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A hidden file beside `path` to write, which takes the place of `path` at the end of the block.

    By then it is on the disk, and so outlives a power cut as whatever is written later and counts on it. A
    block that raises leaves `path` as it was, and nothing beside it. The folder must be there.

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
    """What a file holds, or which names a folder has, survives a power cut from now on. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

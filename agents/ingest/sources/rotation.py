"""Which files are one log: what rotation makes of a name."""

from __future__ import annotations

import re
from pathlib import Path

_TIME = r"(?:[-_T.]?\d{2}(?:[-:]?\d{2}(?:[-:]?\d{2})?)?)?"
_ROTATED = re.compile(
    rf"(?P<stem>.+?)(?P<mark>\.\d{{1,5}}|[-.]\d{{8}}{_TIME}|[-.]\d{{4}}-\d\d-\d\d{_TIME}|[-.]\d{{10}}|\.old|\.bak)?"
    r"(?:\.gz)?"
)


def stream_of(path: Path) -> str:
    """The path of the log that a file is, or was, before it was rotated and packed.

    >>> [stream_of(Path(name)) for name in ("/a.log", "/a.log.12", "/a.log.2.gz", "/a.log-20260131.gz")]
    ['/a.log', '/a.log', '/a.log', '/a.log']
    """
    match = _ROTATED.fullmatch(path.name)
    return str(path.with_name(match["stem"])) if match else str(path)


def is_rotated(path: Path) -> bool:
    """Whether a file's name is one that rotation gives.

    >>> is_rotated(Path("a.log")), is_rotated(Path("a.log.1"))
    (False, True)
    """
    return stream_of(path) != str(path)


def rotation_number(path: Path) -> int:
    """The number of a rotated file, higher for older ones; 0 of others.

    >>> rotation_number(Path("a.log.12.gz")), rotation_number(Path("a.log"))
    (12, 0)
    """
    match = _ROTATED.fullmatch(path.name)
    mark = match["mark"] if match else None
    return int(mark[1:]) if mark and re.fullmatch(r"\.\d{1,5}", mark) else 0

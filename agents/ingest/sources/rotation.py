"""Find the files of one log by the names that rotation gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

_TIME = r"(?:[-_T.]?\d{2}(?:[-:]?\d{2}(?:[-:]?\d{2})?)?)?"
_ROTATED = re.compile(
    rf"(?P<stem>.+?)(?P<mark>\.\d{{1,5}}|[-.]\d{{8}}{_TIME}|[-.]\d{{4}}-\d\d-\d\d{_TIME}|[-.]\d{{10}}|\.old|\.bak)?"
    r"(?:\.gz)?"
)


def stream_of(path: Path) -> str:
    """Return the path of a file's log, from before it was rotated and compressed.

    >>> [stream_of(Path(name)) for name in ("/a.log", "/a.log.12", "/a.log.2.gz", "/a.log-20260131.gz")]
    ['/a.log', '/a.log', '/a.log', '/a.log']
    """
    match = _ROTATED.fullmatch(path.name)
    return str(path.with_name(match["stem"])) if match else str(path)


def is_rotated(path: Path) -> bool:
    """Whether a file has a name given by rotation.

    >>> is_rotated(Path("a.log")), is_rotated(Path("a.log.1"))
    (False, True)
    """
    return stream_of(path) != str(path)


def rotation_number(path: Path) -> int:
    """Return the number of a rotated file, higher for older files; 0 for others.

    >>> rotation_number(Path("a.log.12.gz")), rotation_number(Path("a.log"))
    (12, 0)
    """
    match = _ROTATED.fullmatch(path.name)
    mark = match["mark"] if match else None
    return int(mark[1:]) if mark and re.fullmatch(r"\.\d{1,5}", mark) else 0


def numbered_ages(files: Iterable[tuple[str, Path, int]]) -> dict[str, tuple[int, int]]:
    """Return the sort keys of numbered log files by file key, from keys, paths and times.

    Numbers decide, because a copy, a touch or a restored backup changes times. Times only decide which end
    has the highest number: logrotate gives it to the oldest file, and Log4j to the newest. So a file's time
    is never before an earlier file's.

    >>> files = [("c", Path("a.3"), 10), ("b", Path("a.2"), 99), ("a", Path("a.1"), 30)]
    >>> sorted(numbered_ages(files).items(), key=lambda item: item[1])
    [('c', (10, -3)), ('b', (99, -2)), ('a', (99, -1))]
    """
    logs: dict[str, list[tuple[int, int, str]]] = {}
    for key, path, time in files:
        if number := rotation_number(path):
            logs.setdefault(stream_of(path), []).append((number, time, key))
    ages = {}
    for numbered in logs.values():
        numbered.sort()
        rising = [second[1] - first[1] for first, second in pairwise(numbered)]
        oldest_first = sum(step > 0 for step in rising) > sum(step < 0 for step in rising)
        sign, latest = 1 if oldest_first else -1, 0
        for number, time, key in numbered[::sign]:
            latest = max(latest, time)
            ages[key] = latest, sign * number
    return ages

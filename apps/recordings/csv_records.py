"""The unmodified records of CSV files: a quoted field may contain line endings, and have any length."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator

from ...operators.formats.text.csv_reader import csv_reader

_LARGEST = 16_000_000
"""The number of characters after which a quote counts as never closed."""


def csv_records(lines: Iterable[str], delimiter: str = ",", skipinitialspace: bool = False) -> Iterator[str]:
    """Yield each record's text without its final line ending, from lines with line endings.

    A record has several lines if line endings are quoted (RFC 4180, section 2). A line with broken or
    unclosed quotes is a record by itself, unchanged, and doesn't affect other lines. Blank lines are skipped.

    >>> list(csv_records(['a,"b\\n', 'c"\\n', "\\n", '"d,1\\n', "e,2"]))
    ['a,"b\\nc"', '"d,1', 'e,2']
    """
    returned = deque[str]()
    remaining = iter(lines)
    while (first := returned.popleft() if returned else next(remaining, None)) is not None:
        read = [first]

        def record_lines(read: list[str] = read) -> Iterator[str]:
            yield read[0]
            size = len(read[0])
            while size < _LARGEST:
                line = returned.popleft() if returned else next(remaining, None)
                if line is None:
                    return
                read.append(line)
                size += len(line)
                yield line

        if '"' in first:
            try:
                next(csv_reader(record_lines(), delimiter, skipinitialspace=skipinitialspace), None)
            except csv.Error:
                returned.extendleft(reversed(read[1:]))
                del read[1:]
        if record := "".join(read).rstrip("\r\n"):
            yield record


def cells_of(record: str, delimiter: str = ",", skipinitialspace: bool = False) -> list[str]:
    """Return the fields of one record; none if its quotes are broken.

    >>> cells_of('a,"b, c"'), cells_of('"d,1')
    (['a', 'b, c'], [])
    """
    try:
        return next(csv_reader([record], delimiter, skipinitialspace=skipinitialspace), [])
    except csv.Error:
        return []

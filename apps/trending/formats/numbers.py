"""Recordings of numbers only: counts of posts, or their ids, which contain their time.

Counts are CSV with a header, and with a time and a number in each record; ids are those of Tweets, one per
message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.text.csv import csv
from ...app import AppFormat, Feed, Message, Settings
from ...recordings.compressed_files import as_text, opened, suffix_of
from ...recordings.csv_records import cells_of, csv_records
from ...recordings.lines import milliseconds
from .rows import USUAL, rows
from .twitter_v1 import snowflake, snowflake_ms

_ID = re.compile(rb"\d{11,19}")
_LOOKED_AT = 20


def _id_rows(feed: Feed, settings: Settings) -> Stream:
    at = snowflake(pl.col("id"))
    stream = feed.stream(csv({"id": pl.Int64}), time=at)
    return rows(stream, settings, id=pl.col("id").cast(pl.String))


def _id_messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Read the ids of a file in the order of assignment, after any lines without one, which are unchanged.

    Crawls are written page by page, each from the latest to the earliest.
    """
    with opened(path) as file:
        lines = [line.strip() for line in file if line.strip()]
    ids = []
    for number, line in enumerate(lines):
        if match := _ID.search(line):
            ids.append(int(match[0]))
        elif number:
            yield Message(line)
    for one in sorted(ids):
        yield Message(str(one).encode(), None, snowflake_ms(one))


def _holds_ids(path: Path, head: bytes) -> bool:
    if path.suffix.lower() not in (".csv", ".txt", ".tsv", ".gz"):
        return False
    with opened(path) as file:
        lines = [line for line in islice(file, 1, _LOOKED_AT) if line.strip()]
    return bool(lines) and all(_ID.search(line) and line.lstrip()[:1] not in b"{[" for line in lines)


def _count_rows(feed: Feed, settings: Settings) -> Stream:
    value = csv({settings["time"]: pl.String, settings["value"]: pl.Float64}, header=True)
    at = pl.col(settings["time"])
    stream = feed.stream(value, time=at)
    return rows(stream, settings, n=pl.col(settings["value"]).fill_null(0))


def _count_messages(path: Path, settings: Settings) -> Iterator[Message]:
    with as_text(path) as file:
        records = csv_records(file)
        header = next(records, "").strip()
        names = cells_of(header)
        for record in records:
            sent = milliseconds(dict(zip(names, cells_of(record))).get(settings["time"]))
            line = f"{header}\n{record}".encode(errors="surrogateescape")
            yield Message(line, None, None if sent is None else int(sent))


IDS = AppFormat(
    "ids",
    "Ids of Tweets, one a message; a recording has one a line, alone or among other columns",
    _id_rows,
    _holds_ids,
    _id_messages,
    USUAL,
)
COUNTS = AppFormat(
    "counts",
    "CSV with a header: a time, and how many posts there were",
    _count_rows,
    lambda path, head: suffix_of(path) == ".csv",
    _count_messages,
    {**USUAL, "time": "timestamp", "value": "value"},
)

"""W3C's extended log format, as IIS writes it: records after a ``#Fields`` header, or with IIS's defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages
from ...operators.formats.reasons import Reason
from ...operators.formats.text.lines import refusing, texts_of
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_status, in_columns
from .lines import NOWHERE, first_lines, lines_of, timed
from .members import whole
from .web_requests import missing_paths, refused_requests

IIS = (
    "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) "
    "sc-status sc-substatus sc-win32-status time-taken"
)
"""The fields that IIS writes by default."""

USUAL = {"fields": IIS}
_READ = (
    *("date", "time", "s-ip", "s-computername", "s-sitename", "cs-method", "cs-uri-stem", "cs-username"),
    *("c-ip", "cs(User-Agent)", "sc-status", "sc-bytes", "time-taken", "cs-host"),
)
_UTC = pl.Datetime("us", "UTC")
_SHOWN = 60


@dataclass(frozen=True)
class W3cRecords:
    """A `Decoder` of W3C records with `fields`, or with those named by a ``#Fields`` line before a record.

    Times are in UTC, as the format requires.

    >>> text = b"#Fields: date time c-ip sc-status\\n2026-01-01 10:00:00 192.0.2.1 404"
    >>> found = W3cRecords(IIS).decode(Messages.of([text, b"2026-01-01 10:00:00 192.0.2.1 404"]))
    >>> found.frame.select("c-ip", "sc-status").rows(), found.reasons
    ([('192.0.2.1', '404')], ["4 fields instead of 15: '2026-01-01 10:00:00 192.0.2.1 404'"])

    Source: https://www.w3.org/TR/WD-logfile.html
    """

    fields: str

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {**dict.fromkeys(_READ, pl.String()), "at": _UTC}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        parts = texts.str.extract_groups(r"(?s)^(?:#Fields: ([^\n]*)\n)?(.*)$").struct
        heads, lines = parts.field("1").fill_null(self.fields), parts.field("2")
        columns = {name: pl.Series([None] * len(texts), dtype=pl.String) for name in _READ}
        cells = lines.str.split(" ")
        counts = cells.list.len()
        wanted = heads.str.strip_chars().str.split(" ").list.len()
        for head in heads.unique(maintain_order=True):
            here = heads == head
            for place, name in enumerate(head.split()):
                if name in columns:
                    value = cells.list.get(place, null_on_oob=True)
                    columns[name] = value.zip_with(here & (value != "-"), columns[name])
        times = columns["date"] + "T" + columns["time"]
        at = times.str.to_datetime("%FT%T%.f", time_unit="us", strict=False).dt.replace_time_zone("UTC")
        for place in (lines.str.starts_with("#") | (counts != wanted) | at.is_null()).arg_true().to_list():
            shown = repr(lines[place][:_SHOWN])
            if lines[place].startswith("#"):
                reason = Reason("a header, not a record", f"a header, not a record: {shown}")
            elif counts[place] != wanted[place]:
                what = f"{counts[place]} fields instead of {wanted[place]}"
                reason = Reason("not as many fields as are named", f"{what}: {shown}")
            else:
                reason = Reason("no time", f"no time in {shown}")
            refused[int(rows[place])] = reason
        return refusing(
            pl.DataFrame([c.alias(n) for n, c in columns.items()] + [at.alias("at")]), rows, refused
        )


def _begun(feed: Feed, settings: Settings) -> Stream:
    fields = " ".join(settings["fields"].split())
    if missing := [name for name in ("date", "time") if name not in fields.split()]:
        raise ValueError(f"--set fields must name {missing[0]}, got {fields}")
    return feed.stream(W3cRecords(fields), time="at")


def _rows(feed: Feed, settings: Settings) -> Stream:
    method, path, status = pl.col("cs-method"), pl.col("cs-uri-stem"), pl.col("sc-status")
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.coalesce("cs-host", "s-computername", "s-sitename", "s-ip"),
        address=pl.col("c-ip"),
        user=pl.col("cs-username"),
        operation=path,
        status=status,
        failed=failed_status(status, settings),
        refused=refused_requests(method, path, status),
        missing=missing_paths(status),
        bytes=whole(pl.col("sc-bytes")),
        seconds=pl.col("time-taken").cast(pl.Float64, strict=False) / 1000,
        agent=pl.col("cs(User-Agent)").str.replace_all("+", " ", literal=True),
        message=pl.concat_str(method, path, ignore_nulls=True, separator=" "),
        term=pl.concat_str(method, status, separator=" "),
    )


def _records(path: Path) -> Iterator[bytes]:
    """Yield each record after the ``#Fields`` line that applies to it; other headers don't matter."""
    head = b""
    for line in lines_of(path):
        if line.startswith(b"#Fields:"):
            head = line + b"\n"
        elif not line.startswith(b"#"):
            yield head + line


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE, settings), _records(path))


def _recognises(path: Path, head: bytes) -> bool:
    lines = first_lines(head)
    return any(line.startswith(b"#Fields: ") and b" time" in line for line in lines)


W3C = AppFormat(
    "w3c",
    "W3C's extended log format, as IIS writes it, a record a message, which a #Fields line may precede",
    _rows,
    _recognises,
    _messages,
    USUAL,
)

"""Text lines of programs, with automatically recognised or user-defined layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages
from ...operators.formats.reasons import Reason
from ...operators.formats.text.iso_times import read_times
from ...operators.formats.text.lines import refusing, texts_of
from ...operators.formats.text.local_times import in_zone, zones_of
from ...operators.formats.text.syslog import in_latest_year
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_level, failed_text, in_columns, login_columns, template
from .layouts import GROUPS, LAYOUTS, TAI64N, LineLayout, own_layout, read_layouts
from .lines import NOWHERE, first_lines, lines_of, reads, timed
from .logins import WithLogins
from .years import YEAR, yearly_stamps

USUAL = {"zone": "UTC", **YEAR, "layouts": "", "pattern": "", "time": ""}
"""The zone of times without one, the first year of a recording whose times have none, and user-defined
layouts: a file of them, or a single one as its expression and time format."""

_UTC = pl.Datetime("us", "UTC")
_COLUMNS = tuple(name for name in GROUPS if name not in ("time", "epoch"))
_SHOWN = 60
_MILLISECONDS = ":ms"
_SINGLE_LETTERS = {"V": "verbose", "D": "debug", "I": "info", "W": "warning", "E": "error", "F": "fatal"}
_CONTINUED = re.compile(
    rb"\s|Caused by: |Traceback \(most recent|\.\.\. \d+ more|[\w.$]+(?:Error|Exception)\b(?!.* - )"
)
"""The beginnings of continuation lines: of stack traces, and indented lines."""
_LONGEST = 65_536


@dataclass(frozen=True)
class TextLines:
    """A `Decoder` of lines with a time; `layouts` are tried in order, line by line.

    >>> one, other = b"2026-01-01 10:00:00,5 - app - ERROR - no disk", b"081109 203615 148 INFO dfs.Node: up"
    >>> result = TextLines().decode(Messages.of([one, other, b"?"]))
    >>> result.frame.select("program", "level", "message").rows(), result.reasons
    ([('app', 'ERROR', 'no disk'), ('dfs.Node', 'INFO', 'up')], ["a line of no layout: '?'"])
    """

    zone: str = "UTC"
    layouts: tuple[LineLayout, ...] = LAYOUTS
    version: ClassVar[int] = 1
    """Increased whenever the known layouts change."""

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {"time": _UTC, **dict.fromkeys(_COLUMNS, pl.String())}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        sent = pl.Series(messages.timestamp[rows]).cast(pl.Int64)
        numbers = pl.int_range(len(texts), dtype=pl.UInt32, eager=True)
        left = pl.DataFrame({"row": numbers, "text": texts, "sent_us": sent.set(sent < 0, None) * 1000})
        parts = [pl.DataFrame(schema={"row": pl.UInt32(), **self.schema})]
        for layout in self.layouts:
            if not left.height:
                break
            is_one = left["text"].str.contains(layout.expression)
            if is_one.any():
                part = self._read(layout, left.filter(is_one))
                parts.append(part.filter(pl.col("time").is_not_null()))
                left = left.join(parts[-1], on="row", how="anti", maintain_order="left")
        for number, text in left.select("row", "text").iter_rows():
            refused[int(rows[number])] = Reason(
                "a line of no layout", f"a line of no layout: {text[:_SHOWN]!r}"
            )
        frame = pl.concat(parts).sort("row")
        whole = pl.DataFrame({"row": numbers}).join(frame, on="row", how="left", maintain_order="left")
        return refusing(whole.drop("row"), rows, refused)

    def _read(self, layout: LineLayout, lines: pl.DataFrame) -> pl.DataFrame:
        """Return the columns of lines with a layout; invalid times are null."""
        groups = lines["text"].str.extract_groups(layout.expression).struct
        named = {name: groups.field(name) for name in groups.fields}
        nothing = pl.Series([None] * lines.height, dtype=pl.String)
        columns = {name: named.get(name, nothing) for name in _COLUMNS}
        if layout.program:
            columns["program"] = columns["program"].fill_null(layout.program)
        time = self._times(layout, named, lines["sent_us"], named.get("host"))
        return pl.DataFrame(
            [lines["row"], time.alias("time"), *(one.alias(name) for name, one in columns.items())]
        )

    def _times(
        self,
        layout: LineLayout,
        named: dict[str, pl.Series],
        sent_us: pl.Series,
        hosts: pl.Series | None,
    ) -> pl.Series:
        if "epoch" in named:
            return _of_epoch(named["epoch"])
        text = named["time"].str.replace_all(" +", " ")
        if not layout.time:
            return self._iso_times(text, sent_us, hosts)
        extra = None
        pattern = layout.time.replace("%e", "%d")
        if layout.time == TAI64N:
            return _tai_times(text)
        if pattern.endswith(_MILLISECONDS):
            extra = text.str.extract(r":(\d+)$").cast(pl.Int64) * 1000
            text, pattern = text.str.replace(r":\d+$", ""), pattern.removesuffix(_MILLISECONDS)
        text = text.str.replace(",", ".", literal=True) if "%.f" in pattern else text
        if not layout.has_year:
            return in_latest_year(text, pattern, sent_us, self.zone, hosts)
        if "%z" in pattern or "%:z" in pattern:
            return text.str.to_datetime(pattern, time_unit="us", strict=False).dt.convert_time_zone("UTC")
        naive = text.str.to_datetime(pattern, time_unit="us", strict=False)
        whole = naive if extra is None else (naive.to_physical() + extra).cast(pl.Datetime("us"))
        return in_zone(whole, self.zone, sent_us, hosts)

    def _iso_times(self, text: pl.Series, sent_us: pl.Series, hosts: pl.Series | None) -> pl.Series:
        text = text.str.replace_all("/", "-", literal=True).str.replace(",", ".", literal=True)
        text = text.str.replace(r"[T ] ?(\d):", " 0$1:")
        text = text.str.replace(r" ?(?:UTC|GMT)$", "Z").str.replace(r" ([+-]\d)", "$1")
        naive = text.str.replace(" ", "T", literal=True).str.to_datetime(
            "%FT%T%.f", time_unit="us", strict=False
        )
        zoned = in_zone(naive, self.zone, sent_us, hosts)
        if not zoned.null_count():
            return zoned
        return zoned.zip_with(zoned.is_not_null(), read_times(text))

    @cached_property
    def needs_year(self) -> bool:
        """Whether a layout has times without a year."""
        return any(not layout.has_year for layout in self.layouts)


def _of_epoch(text: pl.Series) -> pl.Series:
    """Convert numbers since 1970 to times, in the unit implied by each number's size (before the year
    5138)."""
    number = pl.col("number")
    unit = pl.when(number < 1e11).then(1e6).when(number < 1e14).then(1e3).when(number < 1e17).then(1.0)
    frame = pl.DataFrame({"number": text.cast(pl.Float64, strict=False)})
    microseconds = number * unit.otherwise(1e-3)
    return frame.select(microseconds.cast(pl.Int64, strict=False).cast(_UTC)).to_series()


def _decoder(settings: Settings) -> TextLines:
    try:
        zones_of(settings["zone"])
    except ValueError as error:
        raise ValueError(f"--set zone: {error}") from None
    own = read_layouts(settings["layouts"]) if settings["layouts"] else ()
    if settings["time"] and not settings["pattern"]:
        raise ValueError("--set time is the format of the times that --set pattern=… finds")
    if settings["pattern"]:
        own = (*own, own_layout(settings["pattern"], settings["time"], "--set pattern"))
    return TextLines(settings["zone"], (*own, *LAYOUTS))


def _tai_times(text: pl.Series) -> pl.Series:
    """Convert TAI64N times, whose seconds are ahead of those since 1970 by 2 ** 62 and ten leap seconds.

    As in daemontools, leap seconds since 1972 are included. Source: https://cr.yp.to/libtai/tai64.html
    """
    seconds = text.str.slice(8, 8).str.to_integer(base=16, strict=False) - 10
    nanos = text.str.slice(16, 8).str.to_integer(base=16, strict=False)
    return (seconds * 1_000_000 + nanos // 1000).cast(_UTC)


def _begun(feed: Feed, settings: Settings) -> Stream:
    return feed.stream(WithLogins(_decoder(settings)), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    message, program = pl.col("message"), pl.col("program")
    level = pl.col("level").replace(_SINGLE_LETTERS)
    logins = login_columns(message)
    # Servers with a separate client field write it where clients can't.
    for name in ("client", "user"):
        column = "address" if name == "client" else name
        logins[column] = pl.coalesce(
            "login_address" if name == "client" else "login_user", name, logins[column]
        )
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.col("host"),
        **logins,
        operation=pl.when(program != "-").then(program),
        status=level.str.to_lowercase(),
        failed=pl.coalesce(failed_level(level), failed_text(message)),
        message=message,
        term=pl.concat_str(
            pl.when(program != "-").then(program), template(message), ignore_nulls=True, separator=": "
        ),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    begun = _begun(NOWHERE, settings)
    decoder = _decoder(settings)
    stamps = (
        yearly_stamps(path, settings["year"], lambda: _records(lines_of(path)))
        if decoder.needs_year
        else None
    )
    yield from timed(begun, _records(lines_of(path)), stamps, settings["zone"])


def _records(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, each with its continuation lines."""
    record, size = list[bytes](), 0
    for line in lines:
        if record and size < _LONGEST and _CONTINUED.match(line):
            record.append(line)
            size += len(line)
            continue
        if record:
            yield b"\n".join(record)
        record, size = [line], len(line)
    if record:
        yield b"\n".join(record)


TEXT_LINES = AppFormat(
    "text",
    "lines of programs: log4j, logback, Python's, Apache's and nginx's error logs …, or of a layout of yours",
    _rows,
    lambda path, head: reads(_begun(NOWHERE, USUAL), list(_records(first_lines(head)))),
    _messages,
    USUAL,
)

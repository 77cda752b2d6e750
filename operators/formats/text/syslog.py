"""Syslog messages as columns: RFC 5424, RFC 3164 as found in the wild, and the lines of log files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..decode import Decoded
from ..messages import Messages
from ..reasons import Reason
from .iso_times import read_times
from .lines import refusing, texts_of
from .local_times import in_zone, zones_of

_NEW = (
    r"(?s)^<(?<pri>\d{1,3})>1 (?<time>\S+) (?<host>\S+) (?<program>\S+) (?<process>\S+) (?<id>\S+) "
    r'(?<data>-|(?:\[(?:[^"\]\\]|"(?:[^"\\]|\\.)*"|\\.)*\])+)(?: (?<message>.*))?$'
)
_OLD = (
    r"(?s)^(?:<(?<pri>\d{1,3})>)?"
    r"(?:(?<day>[A-Z][a-z]{2} +\d{1,2})(?: (?<year>\d{4}))? (?<clock>\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)"
    r"|(?<time>\d{4}-\d{2}-\d{2}T\S+)):? "
    r"(?:<\w+\.\w+> )?(?:(?<host>\S*[^:\s]) )?(?<rest>.*)$"
)
_OFFSET = r"(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"
"""The end of a time that has an offset; such a time has a time of day."""
_TAG = r"(?s)^(?<program>[^\s\[\]:]{1,64})(?:\[(?<process>[^\]]*)\])?: ?(?<message>.*)$"

_OWN = ("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp")
_FACILITIES = (*_OWN, "ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8)))
_TEXTS = ("host", "program", "process", "id", "data", "message", "facility")
_UTC = pl.Datetime("us", "UTC")
_DAY_US = 86_400_000_000
_SHOWN = 60
_OLDEST = 8
"""A number of years that certainly includes a 29 February."""


def syslog(zone: str = "UTC") -> Syslog:
    """A decoder of syslog messages in any of their forms, one per Kafka message.

    It reads RFC 5424; RFC 3164, with and without its priority; and the lines of log files, whose times are as
    in RFC 3164 or ISO 8601. Columns are `time`, `host`, `program`, `process`, `id` (MSGID), `data`
    (structured data, unparsed), `message`, `facility` and `severity` (0, an emergency, to 7, debugging);
    fields that are ``-`` or missing are null.

    A time of RFC 3164 has neither year nor zone. `zone` names the zone of times without one, and may add
    zones for some hosts, as in ``"UTC, ny-*=America/New_York"``. The year is the latest year in which the
    time is at most a day after the message's Kafka timestamp, so a message of 31 December that arrives in
    January gets the previous year. The same timestamp decides whether an hour that occurs twice at the end of
    daylight saving time is the first or the second. A message of RFC 5424 without a time gets that timestamp.

    Messages of another form, or without a valid time, are refused. Use ``time="time"`` in a stream to use the
    messages' times. Raises `ValueError` for an unknown zone.

    >>> import streamgauge as sg
    >>> lines = [b"<34>Dec 31 23:59:58 web su[7]: failed", b"<165>1 2026-01-01T00:00:03Z web app 8 ID47 - up"]
    >>> messages = sg.formats.Messages.of([*lines, b"oops"], timestamps=[1_767_225_602_000] * 3)
    >>> found = sg.syslog().decode(messages)
    >>> found.frame.select("host", "program", "message", "severity").rows()
    [('web', 'su', 'failed', 2), ('web', 'app', 'up', 5)]
    >>> [str(time) for time in found.frame["time"]], found.reasons
    (['2025-12-31 23:59:58+00:00', '2026-01-01 00:00:03+00:00'], ["not a message of syslog: 'oops'"])

    Source: RFC 3164 (2001) and RFC 5424 (2009).
    """
    try:
        zones_of(zone)
    except (ValueError, TypeError) as error:
        raise ValueError(f"syslog: {error}") from None
    return Syslog(zone)


@dataclass(frozen=True)
class Syslog:
    """A `Decoder` of syslog, created by `syslog`. `zone` has the zones of times without one."""

    zone: str = "UTC"

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {"time": _UTC, **dict.fromkeys(_TEXTS, pl.String()), "severity": pl.Int16()}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        new, old = texts.str.extract_groups(_NEW).struct, texts.str.extract_groups(_OLD).struct
        rest = old.field("rest")
        tag = rest.str.extract_groups(_TAG).struct
        tagged = tag.field("program").is_not_null()
        priority = _either(new.field("pri"), old.field("pri")).cast(pl.Int16)
        process = tag.field("process")
        parts = {
            "host": _either(new.field("host"), old.field("host")),
            "program": _either(new.field("program"), tag.field("program")),
            "process": _either(new.field("process"), process.set(process == "", None)),
            "id": new.field("id"),
            "data": new.field("data"),
            "message": _either(
                new.field("message").str.strip_prefix("\ufeff"), tag.field("message").zip_with(tagged, rest)
            ),
        }
        frame = pl.DataFrame([column.set(column == "-", None).alias(name) for name, column in parts.items()])
        stamped = _either(new.field("time"), old.field("time"))
        sent = pl.Series(messages.timestamp[rows]).cast(pl.Int64)
        sent = sent.set(sent < 0, None)
        clocks = sent * 1000, frame["host"]
        time = _either(self._of_iso(stamped, *clocks), self._without_year(old, *clocks))
        own = new.field("time") == "-"
        time = time.zip_with(
            ~own.fill_null(False), (sent * 1000).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        )
        frame = frame.select(
            time.alias("time"),
            *(pl.col(name) for name in parts),
            (priority // 8).cast(pl.String).replace(dict(enumerate(_FACILITIES))).alias("facility"),
            (priority % 8).alias("severity"),
        ).select(*self.schema)
        known = new.field("pri").is_not_null() | rest.is_not_null()
        wrong = time.is_null() | (priority.fill_null(0) >= 8 * len(_FACILITIES))
        for at in np.flatnonzero(wrong.to_numpy()).tolist():
            shown = repr(texts[at][:_SHOWN])
            if not known[at]:
                reason = Reason("not a message of syslog", f"not a message of syslog: {shown}")
            elif time[at] is None:
                reason = Reason("no time", f"no time in {shown}")
            else:
                reason = Reason("invalid priority", f"invalid priority {priority[at]}")
            refused[int(rows[at])] = reason
        return refusing(frame, rows, refused)

    def _of_iso(self, text: pl.Series, sent_us: pl.Series, hosts: pl.Series) -> pl.Series:
        """ISO 8601 times; those without an offset are local times of the zone."""
        times = read_times(text)
        local = times.is_not_null() & ~text.str.contains(_OFFSET).fill_null(True)
        if not local.any():
            return times
        return times.zip_with(~local, in_zone(times.dt.replace_time_zone(None), self.zone, sent_us, hosts))

    def _without_year(self, old: Any, sent_us: pl.Series, hosts: pl.Series) -> pl.Series:
        """Times such as ``Oct 11 22:14:15``, most without a year."""
        day, clock, year = (old.field(name) for name in ("day", "clock", "year"))
        text = day.str.replace(" +", " ") + " " + clock
        whole = (year + " " + text).str.to_datetime("%Y %b %d %H:%M:%S%.f", time_unit="us", strict=False)
        zoned = in_zone(whole, self.zone, sent_us, hosts)
        text = text.set(year.is_not_null(), None)
        return _either(zoned, in_latest_year(text, "%b %d %H:%M:%S%.f", sent_us, self.zone, hosts))


def in_latest_year(
    text: pl.Series, pattern: str, sent_us: pl.Series, zone: str, hosts: pl.Series | None = None
) -> pl.Series:
    """Times without a year, in the latest year in which each is at most a day after the time it was sent.

    >>> sent = pl.Series([1_767_225_602_000_000] * 2)
    >>> [str(at) for at in in_latest_year(pl.Series(["12-31 23:59", "x"]), "%m-%d %H:%M", sent, "UTC")]
    ['2025-12-31 23:59:00+00:00', 'None']
    """

    def in_year(years: pl.Series) -> pl.Series:
        whole = years.cast(pl.String) + " " + text
        return whole.str.to_datetime(f"%Y {pattern}", time_unit="us", strict=False)

    years = sent_us.cast(pl.Datetime("us")).dt.year()
    wanted = text.is_not_null() & sent_us.is_not_null()
    times = pl.Series([None] * len(text), dtype=pl.Datetime("us"))
    for ahead in range(1, -_OLDEST - 1, -1):
        missing = wanted & times.is_null()
        if not missing.any():
            break
        at = in_year(years + ahead)
        early = at.to_physical() <= sent_us + _DAY_US
        times = times.zip_with(~(missing & early.fill_null(False)), at)
    return in_zone(times, zone, sent_us, hosts)


def _either(first: pl.Series, second: pl.Series) -> pl.Series:
    return first.zip_with(first.is_not_null(), second)

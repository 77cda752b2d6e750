"""Syslog into columns: the forms in which it comes, years that are missing, lines that are not syslog."""

from __future__ import annotations

import pickle
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.syslog import syslog

TURN = datetime(2026, 1, 1, tzinfo=UTC)


def decode(values: list[Any], sent: datetime | list[datetime] = TURN, zone: str = "UTC") -> Decoded:
    stamps = sent if isinstance(sent, list) else [sent] * len(values)
    given = [value.encode() if isinstance(value, str) else value for value in values]
    decoder = pickle.loads(pickle.dumps(syslog(zone)))
    messages = Messages.of(given, timestamps=[int(at.timestamp() * 1000) for at in stamps])
    return decoder.decode(messages).checked(len(values), decoder.schema)


def test_messages_that_are_written_are_read_back_whatever_their_form() -> None:
    by, lines, sent, wanted = random.Random(3), [], [], []
    zone = ZoneInfo("Europe/Berlin")
    for _ in range(2_000):
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=by.randrange(3 * 366 * 86_400))
        priority, host = by.randrange(192), by.choice(["web-1", "10.0.0.7", "2001:db8::1"])
        program, process = by.choice(["sshd", "sshd(pam_unix)", "postfix/smtpd"]), by.choice([None, "77"])
        text = by.choice(["up", "a: b [c] \\ d", "über\nzwei Zeilen", ""])
        form = by.choice(["5424", "3164", "file", "rsyslog"])
        tag = f"{program}{'' if process is None else f'[{process}]'}: {text}"
        local = at.astimezone(zone)
        old = f"{local.strftime('%b')} {local.day:2d} {local.strftime('%H:%M:%S')}"
        if form == "5424":
            data = by.choice(["-", r'[a@1 x="]\"" y=""][b]'])
            stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
            lines.append(f"<{priority}>1 {stamp} {host} {program} {process or '-'} - {data} {text}")
        elif form == "3164":
            lines.append(f"<{priority}>{old} {host} {tag}")
        else:
            lines.append(f"{old if form == 'file' else local.isoformat()} {host} {tag}")
        level = priority % 8 if form in ("5424", "3164") else None
        sent.append(at + timedelta(seconds=by.randrange(-80_000, 300 * 86_400)))
        wanted.append((at, host, program, process, text, level))
    decoded = decode(lines, sent, "Europe/Berlin")
    assert decoded.reasons == []
    names = ["time", "host", "program", "process", "message", "severity"]
    twice = [  # the hour that summer time ends with names two points in time
        at.astimezone(zone).replace(fold=1).utcoffset() != at.astimezone(zone).replace(fold=0).utcoffset()
        for at, *_ in wanted
    ]
    rows = decoded.frame.select(names).rows()
    assert [r for r, odd in zip(rows, twice) if not odd] == [w for w, odd in zip(wanted, twice) if not odd]


def test_the_year_is_the_latest_that_is_not_ahead_of_the_message() -> None:
    days = {
        "Dec 31 23:59:59": datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
        "Jan  1 00:00:01": datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
        "Jan  2 00:00:01": datetime(2025, 1, 2, 0, 0, 1, tzinfo=UTC),
        "Feb 29 12:00:00": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "Oct  9 2015 10:15:00": datetime(2015, 10, 9, 10, 15, tzinfo=UTC),
    }
    assert decode([f"{day} h p: x" for day in days]).frame["time"].to_list() == list(days.values())
    before = decode(["Jan  1 00:00:01 h p: a clock that is ahead"], TURN - timedelta(seconds=30))
    assert before.frame["time"].to_list() == [TURN + timedelta(seconds=1)]


def test_parts_that_are_missing_are_null() -> None:
    decoded = decode(
        [
            "<34>Oct 11 22:14:15 su: no host",
            "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
            "<13>1 - - - - - - \ufeffno time of its own",
            "<13>1 2026-01-01T00:00:00Z h a b c -",
        ]
    )
    assert decoded.frame.select("host", "program", "message", "facility").rows() == [
        (None, "su", "no host", "auth"),
        ("10.0.0.99", None, "Use the BFG!", "user"),
        (None, None, "no time of its own", "user"),
        ("h", "a", None, "user"),
    ]
    assert decoded.frame["time"][2] == TURN


def test_what_is_not_syslog_is_refused_with_its_reason() -> None:
    values = ["", "oops", "<999>Oct 11 22:14:15 h su: x", "Feb 30 00:00:01 h p: x", None, b"\xff"]
    decoded = decode([*values, "<34>1 yesterday h a b c - x"])
    assert decoded.frame.height == 0 and decoded.reasons == [
        "not a message of syslog: ''",
        "not a message of syslog: 'oops'",
        "invalid priority 999",
        "no time in 'Feb 30 00:00:01 h p: x'",
        "no value (a tombstone)",
        "not UTF-8 text",
        "no time in '<34>1 yesterday h a b c - x'",
    ]


def test_a_time_without_a_year_needs_a_message_with_a_time() -> None:
    messages = Messages.of([b"Oct 11 22:14:15 h p: x", b"2026-01-01T00:00:00Z h p: x"], timestamps=[-1, -1])
    decoded = syslog().decode(messages)
    assert decoded.frame.height == 1 and decoded.reasons == ["no time in 'Oct 11 22:14:15 h p: x'"]
    with pytest.raises(ValueError, match="syslog: 'Berlin' is not a time zone"):
        syslog("Berlin")


def test_zones_of_hosts_and_times_without_an_offset() -> None:
    lines = [
        b"Jul  1 12:00:00 h p: x",
        b"Jul  1 12:00:00 ny-3 p: x",
        b"Jul  1 12:00:00 tok p: x",
        b"2026-07-01T12:00:00 ny-3 p: x",
        b"2026-07-01T12:00:00+05:30 ny-3 p: x",
        b"2026-07-01T12:00:00Z tok p: x",
    ]
    zones = "Europe/Berlin, ny-*=America/New_York, tok=Asia/Tokyo"
    stamps = [int(datetime(2026, 7, 2, tzinfo=UTC).timestamp() * 1000)] * len(lines)
    times = syslog(zones).decode(Messages.of(lines, timestamps=stamps)).frame["time"]
    assert times.dt.strftime("%H:%M").to_list() == ["10:00", "16:00", "03:00", "16:00", "06:30", "12:00"]
    with pytest.raises(ValueError, match="syslog: 'Tokyo' is not a time zone"):
        syslog("UTC, tok=Tokyo")


def test_leap_seconds_are_the_next_second() -> None:
    lines = [b"Dec 31 23:59:60 h p: x", b"<34>1 2016-12-31T23:59:60Z h p - - - x"]
    stamps = [int(datetime(2017, 1, 1, 0, 0, 5, tzinfo=UTC).timestamp() * 1000)] * len(lines)
    times = syslog().decode(Messages.of(lines, timestamps=stamps)).frame["time"]
    assert times.to_list() == [datetime(2017, 1, 1, tzinfo=UTC)] * 2

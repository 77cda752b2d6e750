"""Access logs of web servers into columns: every form, hostile lines, a real recording's totals."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.access_log import access_log
from streamgauge.operators.testing import StreamTester

COMMON = '192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5'


def decode(values: list[bytes | None]) -> Decoded:
    return access_log().decode(Messages.of(values)).checked(len(values), access_log().schema)


def test_lines_that_are_written_are_read_back() -> None:
    by, rows, lines = random.Random(5), [], []
    for _ in range(2_000):
        zone = timezone(timedelta(minutes=by.choice([0, 60, -210, 345])))
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=by.randrange(10**8))
        path, query = by.choice(["/", "/ü%20b", "/a/b.html"]), by.choice([None, "", "b=1?c", "x"])
        protocol = by.choice(["HTTP/1.0", "HTTP/2.0", None])
        request = " ".join(
            part for part in ("GET", path + ("" if query is None else f"?{query}"), protocol) if part
        )
        row: list[Any] = [at, by.choice(["::1", "192.0.2.7", "host.example"]), by.choice([None, "ann"])]
        row += ["GET", path, query, protocol, by.choice([200, 404, 503]), by.choice([None, 0, 2**40])]
        kind = by.choice(["common", "combined", "timed", "combined and timed"])
        agent, referrer = by.choice([(None, None), (r"a \"b\" [c] (d;e)", "http://a/?b c")])
        text = f"{row[1]} - {row[2] or '-'} [{at.astimezone(zone).strftime('%d/%b/%Y:%H:%M:%S %z')}] "
        text += f'"{request}" {row[7]} {"-" if row[8] is None else row[8]}'
        text += f' "{referrer or "-"}" "{agent or "-"}"' if "combined" in kind else ""
        text += " 0.125" if "timed" in kind else ""
        row += [referrer, agent] if "combined" in kind else [None, None]
        rows.append((*row, 0.125 if "timed" in kind else None))
        lines.append((text + by.choice(["", "\n", "\r\n"])).encode())
    decoded = decode(lines)
    assert decoded.reasons == [] and decoded.frame.rows() == rows


def test_requests_that_are_not_of_http_count_and_lines_that_are_not_of_a_log_are_refused() -> None:
    odd = ["-", "", r"\x16\x03\x01", "GET", "GET /a b HTTP/1.1", "OPTIONS * RTSP/1.0"]
    decoded = decode([COMMON.replace("GET / HTTP/1.1", request).encode() for request in odd])
    assert decoded.reasons == [] and decoded.frame["status"].to_list() == [200] * 6
    assert decoded.frame["path"].to_list() == [None] * 5 + ["*"]
    refused: list[bytes | None] = [
        *(COMMON[:cut].encode() for cut in (0, 9, 30, 50, 60, 64)),
        COMMON.replace("01/Jan", "31/Feb").encode(),
        COMMON.replace("200 5", "20 5").encode(),
        (COMMON + ' "http://a" "an agent that is cut o').encode(),
        COMMON.encode() + b"\n" + COMMON.encode(),
        b"\xff" + COMMON.encode(),
        None,
    ]
    decoded = decode([COMMON.encode(), *refused])
    assert decoded.frame.height == 1 and decoded.refused.tolist() == [*range(1, len(refused) + 1)]
    assert decoded.reasons[6] == "\"time\" is '31/Feb/2026:00:00:00 +0000'"
    assert decoded.reasons[1] == "not a line of an access log: '192.0.2.7'"
    assert decoded.reasons[-2:] == ["not UTF-8 text", "no value (a tombstone)"]


def test_it_is_sent_to_workers_and_described_in_a_definition() -> None:
    assert pickle.loads(pickle.dumps(access_log())) == access_log()
    rows = Stream.from_kafka("log", value=access_log(), time="time")
    one, two = (rows.tumbling("1m").agg(requests=count()) for _ in range(2))
    assert one.fingerprint() == two.fingerprint()


def test_the_totals_of_a_recording(recordings: Path) -> None:
    """1 line of 10,000 is cut off; 1,753 addresses, 213 requests of what isn't there."""
    lines = (recordings / "logs" / "apache_combined_10k.log").read_bytes().splitlines()
    log = Stream.from_kafka("log", value=access_log(), time="time")
    stream = (
        log.with_columns(pl.col("status").cast(pl.String))
        .tumbling("1d", delay="1d")
        .agg(requests=count(), visitors=distinct("address"), statuses=top_k("status"))
    )
    tester = StreamTester(stream, start=datetime(2015, 5, 21, tzinfo=UTC))
    account = tester.feed_messages(lines)
    assert (account.counted, account.dead_lettered) == (9_999, 1)
    windows = tester.advance(seconds=10 * 86_400).windows()
    exact = decode([*lines]).frame
    assert exact["address"].n_unique() == 1_753
    statuses: Counter[str] = Counter()
    for day, requests, visitors, top in windows.select(
        "window_start", "requests", "visitors", "statuses"
    ).rows():
        of_day = exact.filter(pl.col("time").dt.truncate("1d") == day)
        assert requests == of_day.height
        assert visitors["estimate"] == pytest.approx(of_day["address"].n_unique(), rel=0.049)
        statuses.update({item["item"]: item["estimate"] for item in top})
    assert windows.height == 4 and (statuses["200"], statuses["404"], statuses["500"]) == (9_125, 213, 3)

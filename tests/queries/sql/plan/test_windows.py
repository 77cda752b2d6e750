"""Windows in the words of four systems are the stream that its Python makes."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import streamgauge as sg
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.windows.session import Session

from ..scripts import POSTS, planned


def posts() -> sg.Stream:
    return sg.Stream.from_kafka("posts", value=sg.json(POSTS), time=pl.from_epoch("ts", time_unit="ms"))


def counted(windows: sg.Stream) -> sg.Stream:
    return windows.agg(n=sg.count(), users=sg.distinct("usr"))


WHAT = "lang, COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {WHAT} FROM posts WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY lang EMIT FINAL",
        f"SELECT {WHAT} FROM posts WINDOW TUMBLING (SIZE 60 SECONDS) GROUP BY lang EMIT CHANGES",
        f"SELECT {WHAT} FROM TABLE(TUMBLE(TABLE posts, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
        " GROUP BY window_start, window_end, lang",
        f"SELECT {WHAT} FROM TABLE(TUMBLE(SIZE => INTERVAL '1' MINUTE, DATA => TABLE posts,"
        " TIMECOL => DESCRIPTOR(ts))) GROUP BY window_start, window_end, lang",
        f"SELECT window_start AS w, {WHAT} FROM TUMBLE(posts, ts, INTERVAL '1' MINUTE) GROUP BY w, lang",
        f"SELECT window_start, {WHAT} FROM TUMBLE(posts, ts, INTERVAL '1 minute') GROUP BY"
        f" window_start, lang",
        f"SELECT window.start, {WHAT} FROM posts GROUP BY window(ts, '1 minute'), lang",
        f"SELECT {WHAT} FROM posts GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), lang",
        f"select {WHAT.lower()} from posts window tumbling (size 1 minute) group by 1 emit final",
    ],
)
def test_tumbling(query: str) -> None:
    expected = counted(posts().group_by("lang").tumbling("1m"))
    assert planned(query).stream.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {WHAT} FROM posts WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) GROUP BY"
        f" lang EMIT FINAL",
        f"SELECT {WHAT} FROM TABLE(HOP(TABLE posts, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR))"
        " GROUP BY lang, window_start, window_end",
        f"SELECT {WHAT} FROM TABLE(HOP(DATA => TABLE posts, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5'"
        " MINUTES, SIZE => INTERVAL '1' HOUR)) GROUP BY lang, window_start, window_end",
        f"SELECT {WHAT} FROM HOP(posts, ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR) GROUP BY"
        f" lang, window_start",
        f"SELECT {WHAT} FROM posts GROUP BY window(ts, '1 hour', '5 minutes'), lang",
    ],
)
def test_hopping(query: str) -> None:
    expected = counted(posts().group_by("lang").hopping("1h", every="5m"))
    assert planned(query).stream.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    ("query", "windows"),
    [
        (
            "posts WINDOW TUMBLING (SIZE 1 DAY, TIME ZONE 'Europe/Helsinki') GROUP BY lang EMIT FINAL",
            lambda rows: rows.tumbling("1d", zone="Europe/Helsinki"),
        ),
        (
            "TABLE(TUMBLE(TABLE posts, DESCRIPTOR(ts AT TIME ZONE 'Europe/Helsinki'), INTERVAL '1' DAY)) "
            "GROUP BY window_start, window_end, lang",
            lambda rows: rows.tumbling("1d", zone="Europe/Helsinki"),
        ),
        (
            "TUMBLE(posts, ts AT TIME ZONE 'Asia/Tokyo', INTERVAL '1' MONTH, INTERVAL '-6' HOUR) "
            "GROUP BY lang, window_start",
            lambda rows: rows.tumbling("1mo", offset="-6h", zone="Asia/Tokyo"),
        ),
        (
            "TUMBLE(posts, ts, INTERVAL '1' DAY, INTERVAL '6' HOURS) GROUP BY lang, window_end",
            lambda rows: rows.tumbling("1d", offset="6h"),
        ),
        (
            "HOP(posts, ts, INTERVAL '1' MONTH, INTERVAL '1' QUARTER) GROUP BY lang, window_start",
            lambda rows: rows.hopping("1q", every="1mo"),
        ),
        (
            "posts WINDOW HOPPING (SIZE 2 DAYS, ADVANCE BY 1 DAY, OFFSET 6 HOURS, TIME ZONE 'Asia/Tokyo', "
            "GRACE PERIOD 10 SECONDS) GROUP BY lang EMIT FINAL",
            lambda rows: rows.hopping("2d", every="1d", offset="6h", zone="Asia/Tokyo"),
        ),
        (
            "CUMULATE(posts, ts AT TIME ZONE 'Asia/Tokyo', INTERVAL '1' DAY, INTERVAL '1' MONTH) "
            "GROUP BY lang, window_end",
            lambda rows: rows.cumulate("1mo", every="1d", zone="Asia/Tokyo"),
        ),
        (
            "posts GROUP BY window(ts AT TIME ZONE 'Asia/Tokyo', '1 week'), lang",
            lambda rows: rows.tumbling("1w", zone="Asia/Tokyo"),
        ),
        (
            "posts GROUP BY window(ts, '1 day', '1 day', '6 hours'), lang",
            lambda rows: rows.tumbling("1d", offset="6h"),
        ),
        (
            "posts GROUP BY TUMBLE(ts AT TIME ZONE 'UTC', INTERVAL '1' YEAR), lang",
            lambda rows: rows.tumbling("1y", zone="UTC"),
        ),
    ],
    ids=lambda one: one[:70] if isinstance(one, str) else "",
)
def test_windows_on_a_calendar(query: str, windows: Any) -> None:
    plan = planned(f"SELECT {WHAT} FROM {query}")
    expected = counted(windows(posts().group_by("lang")))
    assert plan.stream.fingerprint() == expected.fingerprint()
    assert "zone" not in query or "zone=" in plan.python


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {WHAT} FROM posts WINDOW SESSION (5 MINUTES) GROUP BY lang EMIT FINAL",
        f"SELECT {WHAT} FROM posts GROUP BY SESSION(ts, INTERVAL '5' MINUTE), lang EMIT FINAL",
        f"SELECT {WHAT} FROM TABLE(SESSION(TABLE posts PARTITION BY lang, DESCRIPTOR(ts),"
        f" INTERVAL '5' MINUTE))"
        " GROUP BY lang, window_start, window_end",
        f"SELECT session_window.start, {WHAT} FROM posts GROUP BY session_window(ts, '5 minutes'), lang",
    ],
)
def test_sessions(query: str) -> None:
    expected = counted(posts().group_by("lang").session("5m"))
    assert planned(query).stream.fingerprint() == expected.fingerprint()


def test_sessions_of_all_rows_or_of_some_keys() -> None:
    for partition, by in (("", ()), (" PARTITION BY lang", ("lang",))):
        plan = planned(
            f"SELECT lang, usr, COUNT(*) AS n FROM TABLE(SESSION(TABLE posts{partition},"
            " DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end, lang, usr"
        )
        assert plan.stream.window == Session.of("5m", by)
        names: dict[str, Any] = {}
        exec(plan.source, names)
        assert names["stream"].fingerprint() == plan.stream.fingerprint()
        assert described_stream(plan.stream.definition()).window == plan.stream.window


def test_cumulating_and_grace() -> None:
    query = (
        f"SELECT {WHAT} FROM TABLE(CUMULATE(TABLE posts, DESCRIPTOR(ts), INTERVAL '1' MINUTE,"
        f" INTERVAL '1' DAY))"
        " GROUP BY lang, window_start, window_end"
    )
    expected = counted(posts().group_by("lang").cumulate("1d", every="1m"))
    assert planned(query).stream.fingerprint() == expected.fingerprint()
    for grace, delay_us in (("2 HOURS", 7_200_000_000), ("0 SECONDS", 0)):
        window = f"TUMBLING (SIZE 1 DAY, GRACE PERIOD {grace})"
        query = f"SELECT COUNT(*) AS n FROM posts WINDOW {window} EMIT FINAL"
        assert planned(query).stream.delay_us == delay_us


def test_a_filter_and_steps_are_those_of_python() -> None:
    query = (
        "SELECT lang, SUM(price * n) AS spent FROM posts WINDOW TUMBLING (SIZE 1 MINUTE)"
        " WHERE n > 0 AND lang = 'en' GROUP BY lang EMIT FINAL"
    )
    made = {"price * n": pl.col("price") * pl.col("n")}
    stream = posts().filter((pl.col("n") > 0) & (pl.col("lang") == "en")).with_columns(**made)
    expected = stream.group_by("lang").tumbling("1m").agg(spent=sg.sum("price * n"))
    assert planned(query).stream.fingerprint() == expected.fingerprint()


QUERIES = [
    "SELECT * FROM posts EMIT CHANGES",
    "SELECT usr AS who, n / 2 AS half, tags[1] AS tag FROM posts WHERE meta->a > 3 AND meta.b LIKE 'x%'",
    "SELECT lang, EXPLODE(tags) AS tag FROM posts WHERE lang NOT IN ('en', 'fi') EMIT CHANGES",
    "SELECT p.usr, u.region, u.lang AS ulang FROM posts p LEFT JOIN users u ON p.usr = u.usr EMIT CHANGES",
    "SELECT p.usr, COUNT(*) AS n FROM posts p JOIN clicks c WITHIN 10 MINUTES ON p.usr = c.usr"
    " WINDOW SESSION (5 MINUTES) GROUP BY p.usr HAVING COUNT(*) > 2 EMIT FINAL",
    "SELECT tag, COUNT(*) FILTER (WHERE price > 2) AS c, STDDEV(price) AS sd, APPROX_TOP_K(usr,"
    " 3) AS top FROM"
    " posts CROSS JOIN UNNEST(tags) AS t(tag) WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5"
    " MINUTES) GROUP BY tag",
    "SELECT UPPER(lang) AS l, COUNT(*) * 1.0 / SUM(n) AS r FROM posts WINDOW TUMBLING (SIZE 1 DAY)"
    " WHERE ROWTIME > '2026-01-01' GROUP BY UPPER(lang) EMIT FINAL",
    "SELECT CASE WHEN n > 3 THEN 'big' ELSE 'small' END AS size, CAST(usr AS INT) AS number FROM posts",
    'SELECT COUNT(*) AS "how many" FROM posts WINDOW TUMBLING (SIZE 1 DAY) GROUP BY ROWOFFSET',
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_python_of_a_query_makes_the_same_stream(query: str) -> None:
    plan = planned(query)
    names: dict[str, sg.Stream] = {}
    exec(plan.source, names)
    assert names["stream"].fingerprint() == plan.stream.fingerprint()

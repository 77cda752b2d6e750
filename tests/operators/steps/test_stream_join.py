"""What comes of it that rows of two streams meet: seen with the tester."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, first, last, sum
from streamgauge.operators.definition.joining import TooManyRows
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import RefusedRow, StreamTester
from streamgauge.operators.watermarks.position import Input

START = 1_767_225_600
SCHEMAS = {"ads": {"id": pl.Int64, "n": pl.Int64}, "clicks": {"id": pl.Int64, "m": pl.Int64}}


def joined(how: Any = "inner", **options: Any) -> Stream:
    ads, clicks = (
        Stream.from_kafka(topic, value=json({**schema, "at": pl.Int64}), time=pl.from_epoch("at"))
        for topic, schema in SCHEMAS.items()
    )
    return ads.join(clicks, on="id", within="30s", how=how, **options)


def feed(tester: StreamTester, topic: str, *rows: tuple[int | None, int, int], **where: Any) -> Account:
    """Rows of a key, a number, and the seconds since the start."""
    names = [*SCHEMAS[topic], "at"]
    return tester.feed([dict(zip(names, (*row[:2], START + row[2]))) for row in rows], topic=topic, **where)


def windows(tester: StreamTester) -> list[Any]:
    results = tester.finish().windows()
    return results.drop("window_end").with_columns(pl.col("window_start").dt.epoch("s") - START).rows()


def test_each_pair_is_given_once_at_the_later_time_whichever_row_comes_first() -> None:
    stream = joined().tumbling("1m").agg(rows=count(), n=sum("n"), m=sum("m"))
    for order in (("ads", "clicks"), ("clicks", "ads")):
        tester = StreamTester(stream)
        fed = [feed(tester, topic, (1, 1, 50), (2, 4, 55), (None, 8, 50), (1, 2, 70)) for topic in order]
        assert fed[0] == Account(4, 0, 4) and fed[1] == Account(4, 6, -2)
        assert windows(tester) == [(0, 2, 5, 5), (60, 3, 5, 5)]


def test_rows_meet_only_in_partitions_of_one_number() -> None:
    tester = StreamTester(joined().tumbling("1m").agg(rows=count()), partitions=2)
    feed(tester, "ads", (1, 1, 0), partition=0)
    assert feed(tester, "clicks", (1, 1, 0), partition=1).counted == 0
    assert feed(tester, "clicks", (1, 1, 0), partition=0).counted == 2


def test_first_and_last_don_t_depend_on_which_stream_is_read_first() -> None:
    stream = joined().tumbling("1m").agg(first=first("n"), last=last("n"))
    for order in (("ads", "clicks"), ("clicks", "ads")):
        tester = StreamTester(stream)
        for topic in order:
            feed(tester, topic, *((1, number, 20) for number in range(5)))
        assert windows(tester) == [(0, 0, 4)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "windowed",
    [
        lambda rows: rows.hopping("20s", every="5s", delay="3s"),
        lambda rows: rows.sliding("20s", step="5s", delay="3s"),
        lambda rows: rows.session("6s", delay="3s"),
    ],
    ids=["hopping", "sliding", "session"],
)
@pytest.mark.parametrize("how", [pytest.param("inner", marks=pytest.mark.soak), "left"])
def test_every_kind_of_window_is_the_same_whichever_stream_is_read_first(how: Any, windowed: Any) -> None:
    random, collected = np.random.default_rng(11), []
    at = 8 * np.arange(150)
    rows = {topic: (at + random.integers(-16, 16, 150), random.integers(0, 3, 150)) for topic in SCHEMAS}
    for favoured in (0.05, 0.5, 0.95):
        stream = windowed(joined(how, limit=1_000).group_by("id")).agg(rows=count(), n=sum("n"), m=sum("m"))
        tester, read = StreamTester(stream), {"ads": 0, "clicks": 0}
        while left := [topic for topic in SCHEMAS if read[topic] < 150]:
            topic = left[0] if random.random() < favoured else left[-1]
            low, many = read[topic], int(random.integers(1, 9))
            part = zip(*(column[low : low + many].tolist() for column in rows[topic][::-1]))
            feed(tester, topic, *((key, low + number, time) for number, (key, time) in enumerate(part)))
            read[topic] += many
        windows = tester.finish().windows()
        collected.append((tester.account, windows.sort(windows.columns).rows()))
    assert collected[0] == collected[1] == collected[2]
    assert collected[0][0].late > 3 and collected[0][0].counted > 100 and len(collected[0][1]) > 50


def test_windows_wait_for_rows_without_a_partner_and_for_a_silent_partner() -> None:
    tester = StreamTester(joined("left").tumbling("1m").agg(rows=count(), pairs=count("m")))
    feed(tester, "ads", (1, 1, 10), (2, 1, 15), (3, 1, 130))
    feed(tester, "clicks", (1, 1, 20))
    assert tester.advance(3_000).windows().height == 0  # a click for 2 or 3 may still come
    feed(tester, "clicks", (9, 1, 69))
    assert tester.advance(1).account.counted == 2 and tester.account.filtered == 3
    feed(tester, "clicks", (9, 1, 70))  # with which no click of 45 seconds can come
    assert tester.account.counted == 3 and tester.windows().height == 0
    feed(tester, "ads", (3, 1, 400))
    feed(tester, "clicks", (3, 1, 400))
    assert tester.advance(1).windows().select("rows", "pairs").rows()[0] == (2, 1)


@pytest.mark.parametrize("heard", [0, 1], ids=["never heard", "heard before"])
def test_a_partner_that_wakes_finds_rows_from_before_its_silence(heard: int) -> None:
    """Why silence can't close windows here: what it said of a row would be wrong, and can't be recalled."""
    tester = StreamTester(joined("left").tumbling("1m").agg(rows=count(), pairs=count("m")))
    feed(tester, "ads", (1, 1, 10), (2, 1, 15), (3, 1, 300))
    feed(tester, "clicks", *[(None, 1, 0)] * heard)
    assert tester.advance(100_000).windows().height == 0
    feed(tester, "clicks", (1, 1, 20))
    assert tester.advance(100_000).windows().height == 0
    feed(tester, "clicks", (None, 1, 300))  # a message of no key that says how late it is
    assert tester.advance(1).windows().select("rows", "pairs").rows() == [(2, 1)]
    assert tester.account == Account(5 + heard, 3, 2 + heard)


def test_a_silent_partner_that_holds_windows_open_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    ads, clicks = Input("ads", 0), Input("clicks", 0)
    tester = StreamTester(joined("left").tumbling("1m").agg(rows=count()))
    feed(tester, "clicks", (1, 1, 0))
    feed(tester, "ads", (2, 1, 10), (1, 1, 15), (4, 1, 20), (3, 1, 65))
    tester._pairings.warn_idle([clicks])
    assert not caplog.messages  # they would wait just as long for a partner that is not silent
    assert tester._pairings.held_up == 0
    feed(tester, "ads", (3, 1, 125))
    for silent in ([], [ads], [clicks], [clicks]):
        tester._pairings.warn_idle(silent)
    assert ["clicks[0] is silent, and 2 rows of ads[0] wait" in said for said in caplog.messages] == [True]
    assert tester._pairings.held_up == 2
    feed(tester, "clicks", (None, 1, 130))
    for silent in ([], [clicks]):  # it was heard, and is silent again
        tester._pairings.warn_idle(silent)
    assert len(caplog.messages) == 1
    assert tester._pairings.held_up == 0


def test_an_inner_join_waits_for_no_silent_partner() -> None:
    tester = StreamTester(joined().tumbling("1m").agg(rows=count()))
    feed(tester, "ads", (1, 1, 10))
    feed(tester, "clicks", (1, 1, 20))
    assert tester.advance(300).windows()["rows"].to_list() == [1]


def test_rows_that_find_no_partner_are_heard_all_the_same() -> None:
    """A partition whose rows find none is not silent, so it holds windows open as ever."""
    tester = StreamTester(joined().tumbling("1m").agg(rows=count()))
    feed(tester, "ads", (1, 1, 10))
    feed(tester, "clicks", (1, 1, 20))
    for _ in range(20):
        tester.advance(4)
        feed(tester, "ads", (5, 1, 30))
        feed(tester, "clicks", (6, 1, 30))
    assert tester.windows().height == 0


@pytest.mark.parametrize("how", ["inner", "outer"])
def test_a_pair_on_which_a_later_step_fails_makes_its_second_row_a_dead_letter(how: Any) -> None:
    def fragile(n: int) -> int:
        if n == 13:
            raise ValueError("thirteen")
        return n

    added = (pl.col("n") + pl.col("m")).map_elements(fragile, return_dtype=pl.Int64)
    tester = StreamTester(joined(how).with_columns(s=added).tumbling("1m").agg(rows=count(), s=sum("s")))
    feed(tester, "ads", (1, 6, 10), (1, 5, 10))
    assert feed(tester, "clicks", (1, 7, 20), (1, 1, 20)) == Account(2, 3, -2, 0, 1)
    assert tester.refused == [RefusedRow(0, 0, "ValueError: thirteen", "clicks")]
    assert feed(tester, "ads", (1, 0, 20)) == Account(1, 1, 0)  # and pairs with both all the same
    for topic in SCHEMAS:
        feed(tester, topic, (None, 0, 500))
    assert tester.account.balanced and tester.account.dead_lettered == 1
    assert windows(tester)[0] == (0, 4, 7 + 6 + 7 + 1)


def test_a_row_that_could_not_stand_alone_is_a_dead_letter_when_it_comes() -> None:
    requested = pl.when(pl.col("m").is_null()).then(pl.lit("alone")).otherwise(pl.lit("1")).cast(pl.Int64)
    tester = StreamTester(joined("left").with_columns(s=requested).tumbling("1m").agg(s=sum("s")))
    assert feed(tester, "ads", (1, 6, 10), (None, 1, 10)) == Account(2, 0, 0, 0, 2)
    assert feed(tester, "clicks", (1, 6, 10)) == Account(1, 1, 0)
    assert [row.offset for row in tester.refused] == [0, 1]


def test_too_many_rows_that_wait_end_the_run_and_name_the_partner() -> None:
    tester = StreamTester(joined(limit=10).tumbling("1m").agg(rows=count()))
    feed(tester, "ads", *((number, 1, 0) for number in range(10)))
    with pytest.raises(TooManyRows, match=r"10 rows of ads\[0\] wait for partners in clicks\[0\]"):
        feed(tester, "ads", (10, 1, 0))


@pytest.mark.parametrize("how", ["left", "outer"])
@pytest.mark.parametrize("window", ["10s", "1h"])
def test_the_end_gives_rows_without_a_partner_and_a_later_one_replaces_them(how: Any, window: str) -> None:
    tester = StreamTester(joined(how).tumbling(window).agg(rows=count(), m=sum("m")))
    feed(tester, "ads", *((number, 1, number) for number in range(100)))
    feed(tester, "clicks", *((number, 1, number) for number in range(0, 100, 2)))
    results = tester.finish().windows()
    assert (results["rows"].sum(), results["m"].sum()) == (100, 50)
    assert tester.account == Account(150, 150)
    assert feed(tester, "clicks", (99, 1, 99)).read == 1
    results = tester.finish().windows().sort("window_start")
    assert results.row(-1)[2:] == ((10, 6) if window == "10s" else (100, 51))
    assert tester.account == Account(151, 151)


def test_of_rows_that_are_sent_on_the_end_sends_those_without_a_partner() -> None:
    tester = StreamTester(joined("left").rows_to_kafka("out"))
    feed(tester, "ads", (1, 1, 0), (2, 1, 0))
    feed(tester, "clicks", (1, 5, 0))
    assert len(tester.sent()) == 1 and tester.account == Account(3, 2, 1)
    (sent,) = tester.finish().sent()
    assert sent.value == b'{"id":2,"n":1,"at":%d,"m":null,"at_right":null}' % START
    assert tester.account == Account(3, 3)

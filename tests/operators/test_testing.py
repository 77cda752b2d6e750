"""The driver without a broker, and through it the worker's and the merger's rules of event time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from prometheus_client import CollectorRegistry

from streamgauge.operators.definition.aggregates import count, distinct, first, last
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watching.health import health_of
from streamgauge.operators.watching.metrics import watch

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "user": pl.String}, time="at")
STREAM = SOURCE.tumbling("1m", delay="10s").agg(posts=count(), users=distinct("user"))


def post(seconds: float, user: str = "ann") -> dict[str, object]:
    return {"at": START + timedelta(seconds=seconds), "user": user}


def test_a_window_closes_once_every_partition_is_past_it() -> None:
    tester = StreamTester(STREAM, partitions=2)
    tester.feed([post(1), post(2, "bob"), post(75)], partition=0)
    assert tester.windows().height == 0
    tester.feed([post(3), post(69)], partition=1)
    assert tester.windows().height == 0
    tester.feed([post(70)], partition=1)
    closed = tester.windows()
    assert closed["window_start"].to_list() == [START]
    assert closed["posts"].to_list() == [3]
    assert round(closed["users"][0]["estimate"]) == 2
    assert tester.windows().height == 0


def test_the_close_of_a_second_is_its_last_trade_not_its_highest() -> None:
    rows = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "price": pl.List(pl.Float64)}, time="at")
    trades = rows.explode("price").tumbling("1m").agg(opening=first("price"), closing=last("price"))
    tester = StreamTester(trades, partitions=2)
    for prices in ([102.0, 105.0], [101.0], [104.0, 103.0]):
        tester.feed([{"at": START + timedelta(seconds=30), "price": prices}])
    row = tester.advance(100).windows().row(0, named=True)
    assert (row["opening"], row["closing"]) == (102.0, 103.0)


def test_windows_close_on_an_idle_stream_with_the_wall_clock() -> None:
    tester = StreamTester(STREAM, partitions=2)
    tester.feed([post(10)], 0)
    tester.feed([post(50)], 1)
    assert tester.advance(59).windows().height == 0
    assert tester.advance(1).windows()["posts"].to_list() == [2]


def test_a_partition_that_never_had_a_row_holds_nobody_up_once_it_is_known_to_idle() -> None:
    tester = StreamTester(STREAM, partitions=3)
    tester.feed([post(10)], 0)
    tester.feed([post(75)], 0)
    assert tester.advance(4.9).windows().height == 0
    assert tester.advance(0.1).windows()["posts"].to_list() == [1]


def test_rows_that_come_after_an_idle_close_count_and_the_window_comes_again() -> None:
    tester = StreamTester(STREAM)
    tester.feed([post(10)])
    assert tester.advance(70).windows()["posts"].to_list() == [1]
    assert tester.finish().windows().height == 0
    assert tester.feed([post(20)]) == Account(read=1, counted=1)
    assert tester.windows().height == 0
    assert tester.finish().windows()["posts"].to_list() == [2]


def test_rows_of_a_partition_new_to_a_closed_window_are_late_in_the_merger() -> None:
    tester = StreamTester(STREAM, partitions=2)
    tester.feed([post(10), post(75)], 0)
    assert tester.advance(5).windows()["posts"].to_list() == [1]
    assert tester.feed([post(20), post(30), post(80)], 1) == Account(read=3, counted=1, late=2)
    assert tester.account == Account(read=5, counted=3, late=2)
    assert tester.finish().windows()["posts"].to_list() == [2]


def test_the_years_1970_and_2100_do_no_harm() -> None:
    tester = StreamTester(STREAM)
    tester.feed([post(10), {"at": datetime(2100, 1, 1, tzinfo=UTC), "user": "eve"}])
    tester.feed(
        [{"at": datetime(1970, 1, 1, tzinfo=UTC), "user": "eve"}, {"at": None, "user": "eve"}, post(15)]
    )
    assert tester.account == Account(read=5, counted=2, late=1, dead_lettered=2)
    assert [(refused.offset, refused.reason[:13]) for refused in tester.refused] == [
        (1, "the event time"[:13]),
        (3, "no event time"),
    ]
    assert tester.advance(70).windows()["posts"].to_list() == [2]


def test_a_first_row_of_1970_opens_a_window_of_its_own_and_harms_no_other() -> None:
    tester = StreamTester(STREAM)
    tester.feed([{"at": datetime(1970, 1, 1, tzinfo=UTC), "user": "eve"}, post(10), post(75)])
    assert tester.windows()["posts"].to_list() == [1, 1]
    assert tester.account == Account(read=3, counted=3)


def test_windows_are_closed_at_the_end_of_a_bounded_run() -> None:
    tester = StreamTester(STREAM)
    tester.feed([post(10), post(61), post(62)])
    assert tester.finish().windows()["posts"].to_list() == [1, 2]


def test_keyed_windows_come_with_their_keys() -> None:
    tester = StreamTester(SOURCE.group_by("user").tumbling("1m").agg(posts=count()))
    tester.feed([post(1), post(2, "bob"), post(3), post(4, None), post(75)])
    assert tester.windows().select("user", "posts").rows() == [("ann", 2), ("bob", 1), (None, 1)]


def test_a_stream_that_asks_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="has no aggregates"):
        StreamTester(SOURCE)


@pytest.mark.parametrize("partitions", [2, 4])
@pytest.mark.parametrize("silence", [0, 10, 3_600])
def test_a_stream_that_wakes_condemns_none_of_its_rows(partitions: int, silence: float) -> None:
    tester = StreamTester(STREAM, partitions)
    tester.advance(silence)
    rows = [post(silence + second) for second in range(200)]
    for partition in range(partitions):
        tester.feed(rows[partition::partitions], partition)
    assert tester.account == Account(read=200, counted=200)
    assert tester.advance(3_600).finish().windows()["posts"].sum() == 200


def test_what_was_written_in_a_pause_finds_its_windows_open() -> None:
    tester = StreamTester(SOURCE.tumbling("10s", delay="5s").agg(posts=count()), partitions=2)
    for second in range(10):
        tester.feed([post(second)], second % 2)
        tester.advance(1)
    for _ in range(60):
        tester.advance(1)
    assert tester.windows()["posts"].to_list() == [10]
    for partition in (0, 1):
        tester.feed([post(second) for second in range(10 + partition, 70, 2)], partition)
    assert tester.account == Account(read=70, counted=70)
    assert tester.advance(20).windows()["posts"].to_list() == [10] * 6


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_window_that_a_pause_has_closed_takes_the_backlog_and_comes_again_whole(partitions: int) -> None:
    tester = StreamTester(STREAM, partitions)
    for partition in range(partitions):
        tester.feed([post(second) for second in range(partition, 18, partitions)], partition)
    for _ in range(60):
        tester.advance(1)
    assert tester.windows()["posts"].to_list() == [18]
    for partition in range(partitions):
        tester.feed([post(second) for second in range(18 + partition, 80, partitions)], partition)
    assert tester.account == Account(read=80, counted=80)
    # The rows' own time is past it now: it is final.
    again = tester.windows()
    assert again["window_start"].to_list() == [START] and again["posts"].to_list() == [60]
    assert tester.feed([post(59)]) == Account(read=1, late=1)
    assert tester.advance(100).windows()["posts"].to_list() == [20]


def test_a_kept_window_is_final_once_the_partitions_that_are_awake_have_passed_it() -> None:
    tester = StreamTester(STREAM, partitions=2)
    tester.feed([post(second) for second in range(18)], 0)
    assert tester.advance(80).windows()["posts"].to_list() == [18]
    tester.feed([post(second) for second in range(18, 80)], 0)
    assert tester.feed([post(17)], 1) == Account(read=1, counted=1)
    tester.advance(4)
    tester.feed([post(81)], 0)
    # The other is silent, and was waited for: beside one that is awake that closes windows for good.
    assert tester.advance(1).windows()["posts"].to_list() == [61]
    assert tester.feed([post(18)], 1) == Account(read=1, late=1)


def test_two_tellings_of_a_window_are_one_to_those_who_look_later() -> None:
    tester = StreamTester(STREAM)
    tester.feed([post(10)])
    tester.advance(70).feed([post(20), post(75)])
    assert tester.windows().select("window_start", "posts").rows() == [(START, 2)]


def test_what_a_pause_has_closed_is_kept_for_another_hour_and_no_longer() -> None:
    for hours, late in ((0.99, 0), (1.01, 1)):
        tester = StreamTester(STREAM)
        tester.feed([post(10)])
        assert tester.advance(70).advance(hours * 3_600).windows()["posts"].to_list() == [1]
        assert tester.feed([post(20)]).late == late


def test_one_partition_that_wakes_waits_for_the_others_but_not_for_ever() -> None:
    tester = StreamTester(STREAM, partitions=3)
    tester.advance(30)
    tester.feed([post(second) for second in range(0, 100, 2)], 0)
    assert tester.advance(4).windows().height == 0
    tester.feed([post(second) for second in range(1, 80, 2)], 1)
    assert tester.windows().height == 0
    # The third partition stays silent: five seconds after the wake it holds nothing up any more.
    assert tester.advance(1).windows()["posts"].to_list() == [60]
    assert tester.account == Account(read=90, counted=90)


def test_a_partition_with_nothing_but_garbage_holds_no_window_open() -> None:
    tester = StreamTester(STREAM, partitions=2)
    for second in range(0, 200, 2):
        tester.feed([post(second)], 0)
        tester.feed([{"at": None, "user": "eve"}], 1)
        tester.advance(2)
    assert tester.account == Account(read=200, counted=100, dead_lettered=100)
    assert tester.windows()["posts"].to_list() == [30, 30, 30]


def test_a_clock_that_is_ahead_closes_no_window_of_a_silent_partition() -> None:
    tester = StreamTester(STREAM, partitions=2)
    for second in range(100):
        tester.feed([post(second + 3_000)], 1)
        if second < 20 or second > 40:
            tester.feed([post(second)], 0)
        tester.advance(1)
    assert tester.account == Account(read=179, counted=179)


@pytest.mark.slow
@pytest.mark.parametrize("years_ago", [0, 12])
@pytest.mark.parametrize("at", [0, 1, 30])
def test_one_wrong_clock_condemns_none_of_the_rows_that_follow(at: int, years_ago: int) -> None:
    start = START - timedelta(days=365 * years_ago)
    rows = [{"at": start + timedelta(seconds=n), "user": "ann"} for n in range(600)]
    rows.insert(at, {"at": start + timedelta(days=1), "user": "eve"})
    tester = StreamTester(STREAM, partitions=2)
    for row in rows:
        tester.feed([row], 0)
    tester.feed(rows[:at] + rows[at + 1 :], 1)
    account = tester.account
    # In a recording it counts in its own window; where the clock says that it can't be, it is a dead letter.
    wrong_first = bool(years_ago) and at == 0
    assert (account.dead_lettered, account.late) == (0 if years_ago else 1, 2 * wrong_first)
    assert tester.windows()["posts"].to_list()[1:] == [120] * 8


def test_a_recording_that_pauses_for_a_night_goes_on_the_next_day() -> None:
    tester = StreamTester(STREAM)
    rows = [post(day * 86_400 - 10**8 + second) for day in range(3) for second in range(300)]
    tester.feed(rows)
    assert tester.account == Account(read=900, counted=900)
    assert tester.windows().height >= 14


def test_figures_are_those_of_a_run_and_a_registry_shows_them() -> None:
    stream = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "n": pl.Int64}, time="at").filter(
        pl.col("n") > 0
    )
    tester = StreamTester(stream.group_by("n").tumbling("1m", delay="0s").agg(rows=count()), partitions=2)
    registry = CollectorRegistry()
    stop = watch(registry, lambda: (tester.figures(), health_of(tester.figures())))

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"streamgauge_{name}", {"group": "tester", **labels})

    rows = [{"at": START + timedelta(seconds=30 * at), "n": at % 3} for at in range(10)]
    for partition in (0, 1):
        tester.feed(rows, partition)
    tester.feed([{"at": START, "n": 1}], 1)
    assert sample("messages_read_total") == 21 and sample("messages_unaccounted") == 0
    outcomes = [sample("messages_total", outcome=name) for name in ("counted", "filtered", "late")]
    assert outcomes == [12, 8, 1]
    # The ninth row is the last that is not filtered: at minute 4, which is open, in a group of its own.
    assert sample("watermark_timestamp_seconds") == (START + timedelta(minutes=4)).timestamp()
    assert (sample("closed_windows_total"), sample("open_windows"), sample("open_groups")) == (4, 1, 1)
    assert sample("ready") == 1
    tester.advance(10)
    assert sample("partition_idle", topic="input", partition="1") == 1
    stop()

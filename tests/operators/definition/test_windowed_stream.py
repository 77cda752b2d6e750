"""The kinds of windows, as they are defined."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.windows.count import ByCount
from streamgauge.operators.windows.hopping import Hopping
from streamgauge.operators.windows.session import Session
from streamgauge.operators.windows.sliding import Sliding
from streamgauge.operators.windows.tumbling import Tumbling
from streamgauge.operators.windows.window import EARLIEST

ROWS = Stream.from_schema({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))


@pytest.mark.parametrize(
    ("windowed", "reason"),
    [
        (lambda: ROWS.hopping("1m", every="2m"), "every 2m leave rows out"),
        (lambda: ROWS.hopping("1d", every="7us"), "panes of 1us; choose every="),
        (lambda: ROWS.hopping("1m", every="0s"), "every= must be longer than '0s'"),
        (lambda: ROWS.sliding("1m", step="7s"), "aren't a multiple of the step 7s"),
        (lambda: ROWS.sliding("1w"), "604,800 panes of 1s; choose step="),
        (lambda: ROWS.session("0s"), "a gap must be longer than '0s'"),
        (lambda: ROWS.session("1m").hopping("1m", every="1s"), 'windows of 1m already.*"1m" every "1s"'),
        (lambda: ROWS.hopping("1m", every="1s").session("5m"), "windows of 1m every 1s already"),
        (lambda: ROWS.tumbling("often"), "not a duration"),
    ],
)
def test_windows_that_cannot_be_are_refused_where_they_are_written(windowed, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        windowed()


@pytest.mark.parametrize(
    "window",
    [
        Tumbling.every("10us"),
        Hopping.of("10us", "3us"),
        Hopping.of("9us", "6us"),
        Hopping.of("10us", "10us"),
        Sliding.of("8us", "2us"),
    ],
    ids=lambda window: str(window.definition()),
)
def test_panes_know_the_windows_that_they_are_part_of(window) -> None:
    for time in range(-40, 40):
        starts = range(-60, 60)
        ends = [
            s + window.size_us for s in starts if s % window.every_us == 0 and s <= time < s + window.size_us
        ]
        assert (window.first_end(time), window.last_end(time)) == (ends[0], ends[-1])
        assert list(window.ends_of(window.pane_start(time))) == ends
        for reached in range(time - 5, time + 30):
            passed = [end for end in ends if end <= reached]
            assert window.ended_by(time, reached) == (passed[-1] if passed else EARLIEST)
    times = np.arange(-40, 40)
    assert window.first_ends(times).tolist() == [window.first_end(time) for time in range(-40, 40)]
    assert window.last_ends(times).tolist() == [window.last_end(time) for time in range(-40, 40)]


class Shifted(Tumbling):
    """Windows side by side whose edges are not multiples of their length."""

    def first_end(self, time_us: int) -> int:
        return super().first_end(time_us - 3) + 3

    def last_end(self, time_us: int) -> int:
        return super().last_end(time_us - 3) + 3


def test_silence_closes_windows_that_begin_elsewhere() -> None:
    window = Shifted(10, 10)
    for reached in range(-40, 80):
        assert window.ended_by(15, reached) == (23 if reached >= 23 else EARLIEST)


def test_a_change_of_windows_is_another_definition_described_in_words() -> None:
    from streamgauge import count

    requested = [
        ROWS.tumbling("1m"),
        ROWS.hopping("1m", every="1s"),
        ROWS.hopping("1m", every="1m"),
        ROWS.sliding("1m", step="1s"),
        ROWS.session("1m"),
        ROWS.count_window(60),
    ]
    requested = [stream.agg(n=count()) for stream in requested]
    assert len({stream.fingerprint() for stream in requested}) == len(requested)
    (reported,) = differences(requested[1].definition(), requested[4].definition())
    assert reported == "the window changed from hopping 1m 1s to session 1m"
    (reported,) = (
        sentence for sentence in differences(requested[0].definition(), requested[5].definition())[:1]
    )
    assert reported == "the window changed from tumbling 1m to count 60 rows"
    assert all(described_stream(one.definition()).window == one.window for one in requested)
    assert ByCount.from_definition({"size": "60 rows"}) == ByCount(60)
    assert Session.of("1m").definition() == {"window": "session", "gap": "1m"}

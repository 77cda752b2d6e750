"""A rule that would report most rows of a key says so once, and what it kept back."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, last
from streamgauge.rules import Alerting, Change, Threshold

from .plain import Kept

START = datetime(2026, 6, 1)
ROWS = Stream.from_schema({"at": pl.Datetime("us"), "meter": pl.String, "v": pl.Float64}, time="at")
EACH = ROWS.group_by("meter", "at").tumbling("1m", max_ahead=None).agg(v=last("v"))
JUMP = Change("jump", value="v", against="last", by="distance", above=10, every=True, mute=0.2)


def test_a_counter_is_muted_and_heard_again_and_others_are_not() -> None:
    rows, spikes = [], {"lamp": {40, 300}, "counter": {950}}
    for minute in range(1000):
        at = START + timedelta(minutes=minute)
        counted = min(minute, 500) * 50.0 + 99 * (minute in spikes["counter"])
        lamp = 20.0 + 30 * (minute in spikes["lamp"])
        rows += [{"at": at, "meter": "counter", "v": counted}, {"at": at, "meter": "lamp", "v": lamp}]
    kept = Kept()
    tester = StreamTester(EACH, sinks=[Alerting([JUMP], to=[kept], at="at")])
    for begin in range(0, len(rows), 700):
        tester.feed(rows[begin : begin + 700])
        tester.restart()
    tester.feed([{"at": START + timedelta(days=2), "meter": "end", "v": 0}])
    said = [(str(one.plain_key), one.state, one.details.get("muted")) for one in kept.alerts]
    counter = [one[1:] for one in said if one[0] == "counter"]
    assert counter[:11] == [("fired", None)] * 10 + [("fired", True)]
    assert counter[11:] == [("cleared", 500 - 11), ("fired", None), ("fired", None)]
    assert [one for one in said if one[0] == "lamp"] == [("lamp", "fired", None)] * 4
    muted, heard = kept.alerts[next(at for at, one in enumerate(said) if one[2])], kept.alerts[-3]
    assert muted.why.endswith("as on more than 20% of rows, so it is muted until that is rarer")
    assert heard.why == "heard again, after 489 that were muted"


def test_what_mute_can_not_be_is_said() -> None:
    for fields, message in (
        ({"mute": 1.5, "every": True}, "mute must be a share from 0 to 1, got 1.5"),
        ({"mute": True, "every": True}, "mute must be a share from 0 to 1, got True"),
        ({"mute": 0.2}, "mute is for every=True"),
    ):
        with pytest.raises(ValueError, match=message):
            Threshold("t", value="v", above=1, **fields)

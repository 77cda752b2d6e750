"""Every form of ISO 8601 gives the instant that Python's own reader finds, with UTC where none is said."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.iso_times import read_microseconds, read_times
from streamgauge.operators.testing import StreamTester

CLOCKS = ["T21", "T21:31", "T21:31:07", " 21:31:07", "T21:31:07.5", "T21:31:07,250", "T21:31:07.123456789"]
ZONES = ["", "Z", "+02", "+0200", "+02:00", "-09:30", "-0930"]
EXTENDED = ["2013-07-04", *("2013-07-04" + clock + zone for clock, zone in product(CLOCKS, ZONES))]
BASIC = [text.replace("-07-04", "0704").replace(":", "") for text in EXTENDED]
NONE = [
    *("4 July 2013", "2013-13-04", "2013-02-30", "2013-07-04T25:00", "2013-07-04T21:31:07.", "201307-04"),
    *("1372952700", "20130704213107", "2013-07-04T2131:07", "٢٠١٣-07-04", "T21:31", "", "null"),
]


def truth(text: str) -> datetime:
    result = datetime.fromisoformat(text)
    return result if result.tzinfo else result.replace(tzinfo=UTC)


@pytest.mark.parametrize("forms", [EXTENDED, BASIC], ids=["extended", "basic"])
def test_every_form_is_the_instant_that_python_reads(forms: list[str]) -> None:
    wanted = [truth(text) for text in forms]
    assert read_times(pl.Series(forms)).to_list() == wanted
    assert [read_times(pl.Series([text])).item() for text in forms] == wanted


def test_what_is_not_a_time_is_null_beside_what_is() -> None:
    result = read_times(pl.Series([*NONE, None, "2013-07-04 00:00:00"]))
    assert result.to_list() == [None] * (len(NONE) + 1) + [datetime(2013, 7, 4, tzinfo=UTC)]


def test_one_text_is_read_as_many_are() -> None:
    odd = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "0001-01-01 00:00:00+14:00"]
    odd += [
        "2016-12-31T23:59:60Z",
        "2013-07-04T24:00:00",
        "2013-07-04T21:31:07+24:00",
        "2013-07-04T21:31:07-00:00",
    ]
    odd += [
        "2013-07-04T21:31:07+02:60",
        " 2013-07-04T21:31:07",
        "2013-07-04T21:31:07\n",
        "2013-07-04T21:31:07.1234567899Z",
    ]
    texts = [*EXTENDED, *BASIC, *NONE, *odd]
    wanted = read_times(pl.Series(texts)).dt.epoch("us").to_list()
    assert [read_microseconds(text) for text in texts] == wanted


def test_nanoseconds_stay_where_they_are_asked_for() -> None:
    result = read_times(pl.Series(["2013-07-04T00:00:00,123456789+02"]), "ns")
    assert result.to_physical().to_list() == [1372888800_123456789]


def test_a_text_column_as_event_time_takes_every_form_and_says_what_it_cannot_read() -> None:
    stream = Stream.from_schema({"at": pl.String}, time="at").tumbling("1d", delay="3d").agg(n=count())
    tester = StreamTester(stream, start=datetime(2013, 7, 6, tzinfo=UTC))
    tester.feed([{"at": text} for text in EXTENDED + BASIC] + [{"at": "4 July"}, {"at": None}])
    assert tester.account.dead_lettered == 2
    assert tester.account.counted == len(EXTENDED + BASIC)
    assert [letter.reason for letter in tester.refused] == [
        "no event time: \"at\" is '4 July', not a time in ISO 8601",
        'no event time: "at" is null',
    ]


def test_a_json_field_of_type_datetime_takes_every_form() -> None:
    decoder = json({"at": pl.Datetime("us", "UTC")})
    decoded = decoder.decode(Messages.of([f'{{"at": "{text}"}}'.encode() for text in EXTENDED + BASIC]))
    assert decoded.frame["at"].to_list() == [truth(text) for text in EXTENDED + BASIC]

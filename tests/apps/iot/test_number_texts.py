"""Readings that are no plain numbers are read by a setting, or refused by a reason that names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.reasons import kind_of
from streamgauge.operators.testing import StreamTester

TEXTS: list[Any] = [
    "20.5",
    "20,5",
    "1.020,25",
    20.123,
    " -3,5 °C",
    "ON",
    "off",
    "unavailable",
    "NaN",
    None,
    "",
]
SET = {"decimal": ",", "value_unit": "°C", "words": "on=1, off=0, unavailable=, NaN="}
START = datetime(2026, 1, 1, tzinfo=UTC)


def messages(form: str, values: Sequence[Any]) -> list[bytes]:
    stamps = [f"2026-01-01T00:00:{second:02}Z" for second in range(len(values))]
    if form == "json":
        rows = [{"sensor": "a", "time": at, "value": value} for at, value in zip(stamps, values)]
        return [json.dumps(row).encode() for row in rows]
    cells = ["" if value is None else f'"{value}"' for value in values]
    return [f"timestamp,value\n{at},{cell}".encode() for at, cell in zip(stamps, cells)]


def read(form: str, values: Sequence[Any], given: dict[str, str]) -> tuple[list[float], list[str]]:
    stream = Job.of(app_of("iot"), form, given).streams(Feed("t", "localhost:9092"))["readings"]
    tester = StreamTester(stream, start=START)
    sent = messages(form, values)
    tester.feed_messages(sent, timestamps=[START] * len(sent))
    decoded = stream.reading.kafka_source.value.decode(Messages.of(sent, timestamps=[0] * len(sent)))
    assert tester.account.dead_lettered == len(decoded.reasons)
    return tester.finish().windows()["value"].to_list(), list(decoded.reasons)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_settings_read_them(form: str) -> None:
    assert read(form, TEXTS, SET) == ([20.5, 20.5, 1020.25, 20.123, -3.5, 1.0, 0.0], [])


@pytest.mark.parametrize("form", ["json", "csv"])
def test_reasons_name_the_setting(form: str) -> None:
    values, reasons = read(form, [*TEXTS[:-2], "3 %", "1;2"], {})
    assert values == [20.5, 20.123]
    assert reasons == [
        "'20,5' has a decimal comma; --set decimal=, reads it",
        "'1.020,25' has a decimal comma; --set decimal=, reads it",
        "' -3,5 °C' has a unit; --set value_unit=°C reads it",
        "'ON' is a word; --set words=ON=1 reads it, words=ON= leaves it out",
        "'off' is a word; --set words=off=1 reads it, words=off= leaves it out",
        "'unavailable' is a word; --set words=unavailable=1 reads it, words=unavailable= leaves it out",
        "'NaN' is a word; --set words=NaN=1 reads it, words=NaN= leaves it out",
        "'3 %' has a unit; --set value_unit=% reads it",
        "'1;2' is not a number",
    ]
    # Thousands of readings give a few kinds.
    assert len({kind_of(reason) for reason in reasons[:2]}) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decimal": ";"}, "--set decimal must be . or , got ';'"),
        ({"words": "ON"}, "--set words must be such as ON=1,OFF=0,unavailable=, got 'ON'"),
        ({"words": "ON=yes"}, "got 'ON=yes'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("=,", "=,")):
        read("json", [1], given)

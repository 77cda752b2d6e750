"""SensorThings: single observations, pages and data arrays of a service, with every form of their stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.jobs.job import Job
from streamgauge.operators.formats.messages import Messages

FEED = Feed("t", "localhost:9092")
OBSERVATIONS: list[dict[str, Any]] = [
    {"phenomenonTime": "2026-01-01T00:00:00Z", "result": 21.5, "Datastream": {"@iot.id": 7, "name": "roof"}},
    {
        "phenomenonTime": "2026-01-01T00:00:00Z/2026-01-01T00:10:00Z",
        "result": "22",
        "Datastream": {"@iot.id": 7},
    },
    {
        "resultTime": "2026-01-01T01:20:00+01:00",
        "result": 3,
        "Datastream@iot.navigationLink": "h/Datastreams('a')",
    },
    {"phenomenonTime": "2026-01-01T00:30:00Z", "result": 4},
]
WANTED = [("00:00", "roof", 21.5), ("00:10", "7", 22.0), ("00:20", "a", 3.0), ("00:30", "sensor", 4.0)]
ARRAY = {
    "Datastream": {"@iot.id": 9},
    "components": ["phenomenonTime", "result"],
    "dataArray": [["2026-01-01T00:40:00Z", 1], ["2026-01-01T00:50:00Z", 2]],
}


def read(path: Path) -> list[tuple[str, str, float]]:
    job = Job.of(APP, None, {}, recording=path)
    assert job.form.name == "sensorthings"
    stream = job.form.source(FEED, job.settings)
    messages = list(job.form.messages(path, job.settings))
    decoded = stream.reading.kafka_source.value.decode(Messages.of([one.value for one in messages]))
    frame = decoded.frame.with_columns(topic_of_mqtt=pl.lit(None, pl.String), arrived=datetime.now(UTC))
    rows = stream.reading.transform(frame.lazy()).collect()
    assert [at.timestamp() * 1000 for at in rows["at"]] == [one.sent_ms for one in messages]
    return [
        (f"{at:%H:%M}", sensor, value) for at, sensor, value in rows.select("at", "sensor", "value").rows()
    ]


@pytest.mark.parametrize("form", ["lines", "page", "list"])
def test_observations_are_readings_however_they_are_packed(tmp_path: Path, form: str) -> None:
    path = tmp_path / "observations.json"
    whole: dict[str, Any] = {
        "lines": "\n".join(map(json.dumps, OBSERVATIONS)),
        "page": json.dumps({"@iot.nextLink": "…", "value": OBSERVATIONS}, indent=1),
        "list": json.dumps(OBSERVATIONS),
    }
    path.write_text(whole[form])
    assert read(path) == WANTED


def test_data_arrays_are_split(tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps([ARRAY]))
    assert read(path) == [("00:40", "9", 1.0), ("00:50", "9", 2.0)]


def test_the_topic_of_mqtt_names_a_stream_and_what_is_no_number_is_refused() -> None:
    job = Job.of(APP, "sensorthings", {})
    tester = StreamTester(job.streams(FEED)["days"])
    lines = [
        OBSERVATIONS[3],
        {**OBSERVATIONS[3], "result": "wet"},
        {"result": 1},
        {**OBSERVATIONS[3], "result": None},
    ]
    key = b"v1.1/Datastreams(12)/Observations"
    account = tester.feed_messages([json.dumps(one).encode() for one in lines], [key] * 4)
    assert (account.counted, account.filtered, account.dead_lettered) == (1, 1, 2)
    assert [one.reason for one in tester.refused] == [
        '"result" is "wet", not Float64',
        "no event time: it is null",
    ]
    assert tester.finish().windows()["sensor"].to_list() == ["12"]

"""The benchmark of curves: its events, its verdicts and its pictures, without a broker or another engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import streamgauge as sg
from streamgauge.apps.sizing import measured
from streamgauge.bench import curves, draw_curves, latency, sizing
from streamgauge.bench.curve_topics import BEGIN_MS, LATE_MS, SCHEMA, Events
from streamgauge.formats import Messages

RESULT = curves.Result(wall=500.0, spent=400.0, peak=10**8, counted=1_000, rows=10, sum=5.0, distinct=900.0)


@pytest.mark.parametrize("format", ["json", "csv", "avro", "protobuf"])
@pytest.mark.parametrize("size", [70, 500])
def test_each_format_carries_the_same_events_of_the_asked_size(format: Any, size: int) -> None:
    events = Events(messages=200, keys=50, format=format, size=size)
    values = list(events.values())
    mean = sum(map(len, values)) / len(values)
    assert size * 0.8 <= mean <= size * 1.2
    stream = curves.stream_of("localhost:1", "events", events, curves.Query())
    decoded = stream.reading.kafka_source.value.decode(Messages.of(values))
    assert decoded.refused.size == 0
    assert decoded.frame.select([*SCHEMA]).equals(events.frame())


def test_late_and_repeated_events_are_as_many_as_stated() -> None:
    late = Events(messages=10_000, late=20).frame()
    behind = (late["ts"].cum_max() - late["ts"]) >= LATE_MS - 1_000
    assert behind.sum() == pytest.approx(2_000, rel=0.1)
    twice = Events(messages=1_000, twice=True).frame()
    assert twice.unique().height == 900 and twice["ts"].min() == BEGIN_MS


def test_a_key_stays_in_its_partition_unless_there_are_few() -> None:
    events = Events(messages=1_000, keys=100, partitions=4)
    keys = events.frame()["k"]
    placed = pl.DataFrame({"k": keys, "p": events.partition_of(keys.to_numpy())}).unique()
    assert placed.height == keys.n_unique() and placed["p"].n_unique() == 4
    one = Events(messages=1_000, keys=1, partitions=4)
    assert set(one.partition_of(one.frame()["k"].to_numpy())) == {0, 1, 2, 3}


def test_every_point_is_a_stream_that_can_be_defined() -> None:
    for name, points in curves.curves().items():
        assert len(points) > 1, name
        for point in points:
            stream = curves.stream_of("localhost:1", "events", point.events, point.query)
            assert isinstance(stream, sg.Stream)
            assert point.engines[0] == "streamgauge"
    with pytest.raises(ValueError, match="no curve is called nope; there are keys, "):
        curves.selected(["keys", "nope"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"counted": 999}, "999 messages in 10 rows, not 1,000 in 10"),
        ({"rows": 9}, "1,000 messages in 9 rows"),
        ({"sum": 5.1}, "sums of 5.10, not 5.00"),
        ({"distinct": 910.0}, ""),
        ({"distinct": 990.0}, "distinct users of 990.00"),
    ],
)
def test_answers_that_differ_are_reported(change: dict[str, Any], message: str) -> None:
    from dataclasses import replace

    said = curves.disagreement(replace(RESULT, **change), RESULT)
    assert said.startswith(message) and bool(said) == bool(message)


def test_a_peer_that_fails_is_a_row_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> curves.Result:
        raise RuntimeError("the jars could not be fetched")

    monkeypatch.setattr(curves, "ours", lambda *_: RESULT)
    monkeypatch.setattr(curves, "peer", unreachable)
    records = list(curves.run_point("localhost:1", "keys", curves.Point(1), "events"))
    assert [record["engine"] for record in records] == ["streamgauge", "Flink", "Kafka Streams"]
    rows = curves.rows_of(records)
    assert "could not be fetched" in rows[0]["peer"] and "2.00 M/s" in rows[0]["ours"]
    assert rows[-1]["claim"] == "keys: cliffs" and rows[-1]["ours"] == "none"


def test_cliffs_are_measured_by_doubling_and_only_along_numbers() -> None:
    assert curves.cliffs([("lz4", 1.0), ("zstd", 100.0)]) == []
    assert curves.cliffs([(1, 100.0), (1_000, 100.0 * 2.4**9.97)]) == []
    assert curves.cliffs([(50, 100.0), (100, 260.0)]) == ["50 to 100: 2.6 × per doubling"]


@pytest.mark.slow
def test_pictures_are_drawn_from_results_and_repeat(tmp_path: Path) -> None:
    records = [
        {"curve": curve, "value": value, "engine": engine, "spent": 100.0 * n, "peak": 1e8 * n}
        for curve, values in (
            ("keys", [1, 1_000]),
            ("compression", ["none", "lz4"]),
            ("late_percent", [0, 5]),
        )
        for value in values
        for n, engine in enumerate(("streamgauge", "Flink"), 1)
    ]
    records.append({"curve": "keys", "value": 1, "engine": "streamgauge", "spent": 900.0, "peak": 1e8})
    records.append({"curve": "keys", "value": 1, "engine": "Kafka Streams", "failed": "not fetched"})
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    by_curve = draw_curves.read(results)
    assert draw_curves.series(by_curve["keys"], "spent", 1)["streamgauge"] == ([1, 1_000], [100.0, 100.0])
    texts = []
    for folder in ("one", "two"):
        draw_curves.main([str(results), str(tmp_path / folder)])
        texts.append({path.name: path.read_text() for path in (tmp_path / folder).iterdir()})
    assert texts[0] == texts[1]
    assert [*sorted(texts[0])] == ["curve-compression.svg", "curve-keys.svg", "curve-late-percent.svg"]
    assert all(name in texts[0]["curve-keys.svg"] for name in ("Flink", "streamgauge", "1 k"))
    results.write_text("")
    with pytest.raises(ValueError, match="no result in it can be drawn"):
        draw_curves.read(results)


def test_constants_are_written_back_as_the_module_that_holds_them() -> None:
    rows = {"": (1e-7, *map(float, range(9))), "sum": (2.5e-9, *map(float, range(9)))}
    values = {"SOURCE": "a processor, 3 cores", "READ": 1.5e-7, "PROCESS_BYTES": 12_345, "AGGREGATES": rows}
    namespace: dict[str, Any] = {}
    text = sizing.module(values)
    exec(text, namespace)
    assert {name: namespace[name] for name in values} == values
    assert namespace["DECODE"] == measured.DECODE and namespace["FEW"] == measured.FEW
    assert (
        sizing.module({name: getattr(measured, name) for name in values})
        == Path(measured.__file__).read_text()
    )


def test_the_time_of_a_reading_is_read_from_alerts_of_every_engine() -> None:
    alert = sg.rules.Alert("hot", "threshold", "fired", ("s1",), 1_767_225_600_123_456, 0, 1, 1, 1, 1, "")
    [message] = sg.rules.AlertsToKafka("alerts").messages(alert)
    assert latency.event_time(message.value) == 1_767_225_600_123_456
    assert latency.event_time(b'{"rule":"hot","key":"s1","at":1767225600123456}') == 1_767_225_600_123_456
    assert latency.event_time(b'{"rule":"dead","key":"s1","at":1}') is None


def test_percentiles_are_shown_in_milliseconds() -> None:
    assert latency.shown(np.full(10, 0.25)) == "p50 250 ms, p99 250 ms, p99.9 250 ms (10 alerts)"
    assert latency.shown("failed: no jars") == "failed: no jars"

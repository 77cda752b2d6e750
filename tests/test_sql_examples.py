"""Each app written once in SQL gives the app's own answers on its recording."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import streamgauge as sg
from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import ReceivedMessage
from streamgauge.queries.sql.run.session import SqlSession

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "examples"
NOW_MS = 1_767_225_600_000
FEED = Feed("t", "localhost:9092")
TOPICS = {
    "iot": "readings",
    "logs": "access",
    "trending": "jetstream",
    "stocks": "trades",
    "supernova": "alerts",
}


def recording(name: str) -> list[Message]:
    """The app's own example: its hours before now, and the minutes after in which things happen."""
    example = app_of(name).example
    assert example is not None
    end = NOW_MS + 180_000
    sent = takewhile(lambda one: (one.sent_ms or 0) < end, example.messages(3, NOW_MS))
    # Messages that come again the apps drop, which SQL doesn't.
    return list({one.value: one for one in sent}.values())


class Queries:
    """The tables and alerts of an app's script, on the app's recording."""

    def __init__(self, name: str) -> None:
        engine = Memory()
        topic = TOPICS[name]
        engine._inserted[topic] = [
            ReceivedMessage(topic, 0, one.key, one.value, one.sent_ms or NOW_MS) for one in recording(name)
        ]
        self._session = SqlSession(engine, stream_class=sg.Stream)
        outcomes = list(self._session.run((FOLDER / f"{name}.sql").read_text()))
        assert [one.error for one in outcomes if one.error is not None] == []

    def rows(self, query: str) -> list[dict[str, Any]]:
        (outcome,) = self._session.run(query)
        assert outcome.error is None, outcome.error
        assert not outcome.warnings, outcome.warnings
        return [dict(zip(outcome.columns, row)) for row in outcome.to_json()["rows"]]


def of_app(name: str, part: str) -> list[dict[str, Any]]:
    """The answers of a part of the app, on its recording."""
    example = app_of(name).example
    assert example is not None
    job = Job.of(app_of(name), example.format, example.settings)
    tester = sg.StreamTester(job.streams(FEED)[part], start=datetime.now(UTC))
    sent = recording(name)
    stamps = [datetime.fromtimestamp((one.sent_ms or NOW_MS) / 1000, UTC) for one in sent]
    tester.feed_messages([one.value for one in sent], [one.key for one in sent], timestamps=stamps)
    tester.finish()
    return [
        {**row, "window_start": row["window_start"].replace(tzinfo=None).isoformat()}
        for row in tester.windows().iter_rows(named=True)
    ]


def fired(name: str) -> set[Any]:
    example = app_of(name).example
    assert example is not None
    return set(example.events)


def whole(answer: Any) -> int:
    return round(answer["estimate"])


def test_each_app_has_a_script() -> None:
    assert {path.stem for path in FOLDER.glob("*.sql")} == set(APPS)


def by(rows: list[dict[str, Any]], *keys: str) -> dict[Any, dict[str, Any]]:
    result = {tuple(row[key] for key in keys): row for row in rows}
    assert len(result) == len(rows) and result
    return result


@pytest.mark.slow
def test_iot() -> None:
    queries = Queries("iot")
    own = by(of_app("iot", "days"), "window_start", "sensor")
    rows = by(queries.rows("SELECT * FROM days EMIT CHANGES"), "window_start", "sensor")
    assert own.keys() == rows.keys()
    for key, row in rows.items():
        assert [row[n] for n in ("readings", "low", "high")] == [
            own[key][n] for n in ("readings", "low", "high")
        ]
        # 0.5 is the second of the usual shares (`USUAL_QUANTILES`).
        assert row["median"] == own[key]["spread"]["quantiles"][1]["value"]
    hot = queries.rows("SELECT state, key FROM hot EMIT CHANGES")
    assert ("limit", hot[0]["key"]) in fired("iot") and [one["state"] for one in hot] == ["fired", "cleared"]


@pytest.mark.slow
def test_logs() -> None:
    queries = Queries("logs")
    own = by(of_app("logs", "traffic"), "window_start")
    rows = by(queries.rows("SELECT * FROM traffic EMIT CHANGES"), "window_start")
    assert own.keys() == rows.keys()
    for key, row in rows.items():
        exact = ("records", "failures", "bytes")
        assert [row[name] for name in exact] == [own[key][name] for name in exact]
        assert row["visitors"] == whole(own[key]["visitors"])
    days = by(of_app("logs", "days"), "window_start")
    for key, row in by(queries.rows("SELECT * FROM days EMIT CHANGES"), "window_start").items():
        assert row["visitors"] == whole(days[key]["visitors"])
        assert row["agents"][0]["item"] == days[key]["agents"][0]["item"]
        assert row["paths"][0]["estimate"] == days[key]["operations"][0]["estimate"]
    states = queries.rows("SELECT state FROM errors EMIT CHANGES")
    assert ("errors" in {rule for rule, _ in fired("logs")}) == bool(states)


@pytest.mark.slow
def test_trending() -> None:
    queries = Queries("trending")
    own = by(of_app("trending", "volume"), "window_start")
    rows = by(queries.rows("SELECT * FROM volume EMIT CHANGES"), "window_start")
    assert {key: (row["posts"], row["authors"]) for key, row in rows.items()} == {
        key: (row["posts"], whole(row["authors"])) for key, row in own.items()
    }
    terms = [
        row for row in of_app("trending", "trends") if row["kind"] == "tag" and row["authors"]["lower"] >= 10
    ]
    tags = by(queries.rows("SELECT * FROM trends EMIT CHANGES"), "window_start", "tag")
    assert {key: (row["posts"], row["authors"]) for key, row in tags.items()} == {
        (row["window_start"], row["term"]): (whole(row["posts"]), whole(row["authors"])) for row in terms
    }


@pytest.mark.slow
def test_stocks() -> None:
    queries = Queries("stocks")
    own = by(of_app("stocks", "minutes"), "window_start", "symbol")
    rows = by(queries.rows("SELECT * FROM minutes EMIT CHANGES"), "window_start", "symbol")
    assert own.keys() == rows.keys()
    for key, row in rows.items():
        for name in ("open", "high", "low", "close", "volume", "value", "trades"):
            assert row[name] == pytest.approx(own[key][name]), (key, name)
    flow = by(queries.rows("SELECT * FROM flow EMIT CHANGES"), "window_start", "symbol")
    for key, row in by(of_app("stocks", "flow"), "window_start", "symbol").items():
        assert [flow[key][name] for name in ("bought", "sold")] == pytest.approx([row["bought"], row["sold"]])


@pytest.mark.slow
def test_supernova() -> None:
    queries = Queries("supernova")
    own = by(of_app("supernova", "nights"), "window_start", "night")
    (night,) = queries.rows("SELECT * FROM nights EMIT CHANGES LIMIT 1")
    assert night["alerts"] == next(iter(own.values()))["alerts"]
    objects = by(queries.rows("SELECT * FROM objects EMIT CHANGES"), "window_start", "object")
    for key, row in by(of_app("supernova", "objects"), "window_start", "object").items():
        assert (objects[key]["alerts"], objects[key]["brightest"]) == (row["alerts"], row["brightest"])

"""Areas and places: against a slow test of each place in plain Python, and the alerts about moving things."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.iot.fences import fences_in, inside
from streamgauge.apps.jobs.job import Job
from streamgauge.rules import Alert, Alerting

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]
ISLAND = [[10, 10], [12, 10], [11, 13]]


def feature(name: str | None, kind: str, points: Any, **properties: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {
        "type": "Feature",
        "properties": named | properties,
        "geometry": {"type": kind, "coordinates": points},
    }


AREAS = [
    feature("ring", "Polygon", [SQUARE, HOLE]),
    feature("two", "MultiPolygon", [[HOLE], [ISLAND]]),
    feature("circle", "Point", [2, 2], radius=150_000),
]


def written(tmp_path: Path, *features: Any) -> str:
    path = tmp_path / "fences.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(path)


def left_of_all(x: float, y: float, ring: list[list[float]]) -> bool:
    """Whether a place lies in a convex ring, whose points run counterclockwise."""
    ends = [*ring[1:], ring[0]]
    return all((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= 0 for (x1, y1), (x2, y2) in zip(ring, ends))


def metres(x1: float, y1: float, x2: float, y2: float) -> float:
    """By the angle between two vectors."""
    ends = [(math.radians(x), math.radians(y)) for x, y in ((x1, y1), (x2, y2))]
    a, b = ((math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)) for x, y in ends)
    return 6_371_008.8 * math.acos(min(1.0, sum(p * q for p, q in zip(a, b))))


def test_places_are_inside_as_in_plain_python(tmp_path: Path) -> None:
    dice = random.Random(4)
    places = [(dice.uniform(-1, 13), dice.uniform(-1, 14)) for _ in range(3000)]
    frame = pl.DataFrame({"longitude": [x for x, _ in places], "latitude": [y for _, y in places]})
    result = frame.select(inside(fences_in(written(tmp_path, *AREAS))).alias("f"))["f"]
    for (x, y), answers in zip(places, result):
        hole, island = left_of_all(x, y, HOLE[:-1]), left_of_all(x, y, ISLAND)
        wanted = {
            "ring": left_of_all(x, y, SQUARE[:-1]) and not hole,
            "two": hole or island,
            "circle": metres(x, y, 2, 2) <= 150_000,
        }
        assert {one["fence"]: bool(one["inside"]) for one in answers} == wanted
    nowhere = pl.DataFrame({"longitude": [None], "latitude": [1.0]}, schema=frame.schema)
    assert nowhere.select(inside(fences_in(written(tmp_path, *AREAS))))["fence"][0].to_list() == [
        {"fence": name, "inside": None} for name in ("ring", "two", "circle")
    ]


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ([feature(None, "Polygon", [SQUARE])], "feature 1: give it a property 'name'"),
        ([feature("a", "Point", [1, 2])], "feature 1: it is not a Polygon, a MultiPolygon, or a Point with"),
        (
            [feature("a", "Point", [1, 2], radius=-1)],
            "feature 1: its radius must be a number of metres above 0, got -1",
        ),
        ([AREAS[0], AREAS[0]], "two features are named 'ring'"),
        ([feature("a", "LineString", SQUARE)], "feature 1: it is not a Polygon"),
        ([feature("a", "Polygon", [SQUARE * 500])], "its areas have 2,500 edges; simplify them to 2,000"),
    ],
)
def test_what_is_no_area_is_said(tmp_path: Path, features: list[Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        fences_in(written(tmp_path, *features))
    assert said in str(refused.value)
    with pytest.raises(ValueError, match="No such file"):
        fences_in(str(tmp_path / "none.json"))
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(ValueError, match="it is not GeoJSON with features"):
        fences_in(str(tmp_path / "text"))


def test_who_enters_and_leaves_is_reported_with_the_time(tmp_path: Path) -> None:
    given = {
        "fences": written(tmp_path, AREAS[0]),
        "sensor": "id",
        "latitude": "lat",
        "longitude": "lon",
        "hold": "0s",
        "value": "speed",
    }
    job = Job.of(APP, "json", given)
    alerts: list[Alert] = []

    class Kept:
        def begin(self) -> None:
            pass

        def write(self, alert: Alert) -> None:
            alerts.append(alert)

    (part,) = (one for one in job.parts if one.name == "fences")
    alerting = job.alerting(part, [Kept()])
    assert isinstance(alerting, Alerting)
    tester = StreamTester(job.streams(Feed("t", "h:1"))["fences"], sinks=[alerting], start=NOON)
    # A bus drives east through the ring, whose middle is not of it.
    for minute, east in enumerate([-1, 0.5, 0.7, 2, 3.5, 5]):
        at = (NOON + timedelta(minutes=minute)).isoformat()
        for name, north in (("bus", 2.0), ("walker", 9.0)):
            row = {"time": at, "id": name, "lat": north, "lon": east, "speed": 1}
            tester.feed_messages([json.dumps(row).encode()])
    tester.finish()
    reported = [(one.state, one.plain_key, (one.at_us / 1e6 - NOON.timestamp()) / 60) for one in alerts]
    key = ["bus", "ring"]
    assert reported == [("fired", key, 1), ("cleared", key, 3), ("fired", key, 4), ("cleared", key, 5)]
    assert "fences" not in Job.of(APP, "json", {}).streams(Feed("t", "h:1"))

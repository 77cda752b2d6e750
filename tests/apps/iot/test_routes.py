"""Distances from routes: by hand, against vectors on a sphere, and the alerts about who leaves one."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.iot.routes import nearest, routes_in
from streamgauge.apps.jobs.job import Job
from streamgauge.rules import Alert, Alerting

from .test_vehicles import feed, vehicle

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DEGREE = math.pi / 180 * 6_371_008.8
"""Metres of a degree of latitude, or of longitude at the equator: 111,195.08."""

SHAPES = """shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence
out,49.0,8.0,1
out,49.0,8.1,10
out,49.1,8.1,9
back,49.1,8.1,1
back,49.2,8.1,2
"""
TRIPS = "route_id,service_id,trip_id,shape_id\n7,x,a,out\n7,x,b,back\n8,x,c,back\n8,x,d,\n"


def vector(longitude: float, latitude: float) -> np.ndarray:
    x, y = math.radians(longitude), math.radians(latitude)
    return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])


def on_sphere(place: Any, one: Any, other: Any) -> float:
    """Metres from the arc between two places: across it, or from the nearer end."""
    p, a, b = vector(*place), vector(*one), vector(*other)
    ends = min(math.acos(min(1.0, p @ end)) for end in (a, b))
    if (n := np.linalg.norm(normal := np.cross(a, b))) > 0:
        foot = p - (p @ normal) * normal / n**2
        if np.cross(a, foot) @ normal >= 0 and np.cross(foot, b) @ normal >= 0:
            ends = math.asin(abs(p @ normal) / n)
    return 6_371_008.8 * ends


@pytest.mark.parametrize(
    ("place", "segments", "wanted"),
    [
        ((8.5, 0.01), [(8, 0, 9, 0)], 0.01 * DEGREE),  # beside the middle
        ((9.03, 0.04), [(8, 0, 9, 0)], 0.05 * DEGREE),  # beyond an end: 3, 4, 5
        ((8.0, 60.0), [(8.01, 59.0, 8.01, 61.0)], 0.01 * DEGREE / 2),  # a degree is half as wide there
        ((8.0, 0.02), [(8, 0, 9, 0), (7, 0.03, 9, 0.03)], 0.01 * DEGREE),  # the nearer one
        ((-179.99, 0.0), [(179.99, -1, 179.99, 1)], 0.02 * DEGREE),  # across the 180th meridian
        ((180.0, 0.01), [(179, 0, -179, 0)], 0.01 * DEGREE),  # a segment across it
        ((0.0, 0.0), [(179, 0, -179, 0)], 179 * DEGREE),  # which doesn't go around the earth
        ((8.0, 0.01), [(8, 0, 8, 0)], 0.01 * DEGREE),  # a segment without length
    ],
)
def test_distances_are_as_by_hand(place: Any, segments: Any, wanted: float) -> None:
    (result,) = nearest(np.array([place[0]], float), np.array([place[1]], float), np.array(segments, float))
    assert result == pytest.approx(wanted, rel=1e-4)


def test_distances_are_as_on_a_sphere() -> None:
    dice = random.Random(6)
    for _ in range(300):
        latitude = dice.uniform(-65, 65)
        x, y, near = dice.uniform(-180, 180), latitude, 0.02
        wide = near / math.cos(math.radians(latitude))
        p, a, b = ((x + dice.uniform(-wide, wide), y + dice.uniform(-near, near)) for _ in range(3))
        (result,) = nearest(np.array([p[0]]), np.array([p[1]]), np.array([[*a, *b]]))
        assert result == pytest.approx(on_sphere(p, a, b), rel=1e-3, abs=2.0)


def test_no_segment_that_is_nearer_is_passed_over() -> None:
    dice = np.random.default_rng(3)
    segments = np.column_stack([dice.uniform(8, 9, 300), dice.uniform(49, 50, 300)])
    segments = np.hstack([segments, segments + dice.normal(0, 0.02, (300, 2))])
    x, y = dice.uniform(8, 9, 500), dice.uniform(49, 50, 500)
    each = np.array([nearest(x, y, segments[number : number + 1]) for number in range(300)])
    assert nearest(x, y, segments).tolist() == each.min(axis=0).tolist()


def test_routes_of_gtfs_are_their_shapes_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "shapes.txt"
    path.write_text(SHAPES)
    shapes = routes_in(str(path))
    out = [[8.0, 49.0, 8.1, 49.1], [8.1, 49.1, 8.1, 49.0]]
    assert {name: ends.tolist() for name, ends in shapes.lines.items()} == {
        "out": out,
        "back": [[8.1, 49.1, 8.1, 49.2]],
    }
    with pytest.raises(ValueError, match=r"trips\.txt, which names the shape of each route"):
        routes_in(str(path), "route")
    (tmp_path / "trips.txt").write_text(TRIPS)
    by_route, by_trip = (routes_in(str(path), group) for group in ("route", "trip"))
    assert by_route.segments("7").tolist() == [*out, [8.1, 49.1, 8.1, 49.2]]
    assert by_route.segments("8").tolist() == shapes.segments("back").tolist()
    assert list(by_trip.of_route) == ["a", "b", "c"]
    assert len({one.digest for one in (shapes, by_route, by_trip)}) == 3


def test_routes_of_geojson_and_of_csv_are_the_same(tmp_path: Path) -> None:
    lines = {"a": [[[8, 49], [8.1, 49.1]]], "b": [[[9, 49], [9, 50]], [[7, 49], [7, 50], [7.5, 50]]]}
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": kind, "coordinates": points}}
        for name, kind, points in (("a", "LineString", lines["a"][0]), ("b", "MultiLineString", lines["b"]))
    ]
    one, two = tmp_path / "routes.geojson", tmp_path / "routes.csv"
    one.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    two.write_text("route,latitude,longitude\na,49,8\na,49.1,8.1\n")
    result, other = routes_in(str(one)), routes_in(str(two))
    assert result.segments("a").tolist() == other.segments("a").tolist() == [[8, 49, 8.1, 49.1]]
    assert len(result.segments("b")) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("route,latitude,longitude\na,49,8\n", "the line 'a' has one point only"),
        ("route,latitude,longitude\na,49,8\na,99,8\n", "the line 'a' has a point that is not on the earth"),
        (
            "route,latitude,longitude\na,49,8\na,north,8\n",
            "the line 'a' has a point that is not on the earth",
        ),
        ("route,latitude,longitude\n", "has no route; it is CSV with the columns route"),
        ("name,lat,lon\na,49,8\n", "it can't be read; it is CSV with the columns route, latitude, longitude"),
        ('{"type": "Feature", "properties": {}}', "it can't be read; it is CSV"),
        ("{", "it can't be read; it is CSV"),
    ],
)
def test_what_is_no_route_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "routes").write_text(text)
    with pytest.raises(ValueError) as refused:
        routes_in(f"{tmp_path}/routes")
    assert said in str(refused.value)
    with pytest.raises(ValueError, match="No such file"):
        routes_in(f"{tmp_path}/none")


class Kept(list[Alert]):
    """An outlet that keeps its alerts."""

    def begin(self) -> None:
        pass

    def write(self, alert: Alert) -> None:
        self.append(alert)


def trial(job: Job) -> tuple[StreamTester, Kept]:
    alerts = Kept()
    (part,) = (one for one in job.parts if one.name == "routes")
    alerting = job.alerting(part, [alerts])
    assert isinstance(alerting, Alerting)
    return StreamTester(job.streams(Feed("t", "h:1"))["routes"], sinks=[alerting], start=NOON), alerts


def test_who_is_off_its_route_for_a_while_is_reported_until_it_is_back(tmp_path: Path) -> None:
    (tmp_path / "shapes.txt").write_text(SHAPES)
    (tmp_path / "trips.txt").write_text(TRIPS)
    given = {"routes": f"{tmp_path}/shapes.txt", "off_route": "200", "on_route": "100", "off_hold": "1m"}
    tester, alerts = trial(Job.of(APP, "gtfs-realtime", given))
    # Metres east of the line of route 8, every half minute: a short jump, then a detour, then near and back.
    course = [0, 0, 300, 0, 250, 400, 400, 150, 150, 90, 0]
    for step, metres in enumerate(course):
        at = NOON + timedelta(seconds=30 * step)
        east = 8.1 + metres / (DEGREE * math.cos(math.radians(49.15)))
        reported = [
            vehicle("1", "bus", at, (49.15, east), 10.0, "8"),
            vehicle("2", "other", at, (49.15, east), 10.0, "99"),  # nobody knows that route
            vehicle("3", "lost", at, (49.15, east), 10.0),
        ]
        tester.feed_messages([feed(at, *reported)])
    closed = tester.finish().windows()
    reported = [(one.state, one.plain_key, (one.at_us / 1e6 - NOON.timestamp()) / 30) for one in alerts]
    assert reported == [("fired", "bus", 6), ("cleared", "bus", 9)]
    assert alerts[0].why.startswith("metres is 400") and "above 200 for 1m" in alerts[0].why
    assert "route: '8'" in alerts[0].why
    assert closed.sort("at")["metres"].to_list() == pytest.approx(course, rel=1e-3, abs=0.1)
    assert set(closed["sensor"]) == {"bus"}


def test_without_groups_the_nearest_route_counts_and_other_routes_make_another_stream(tmp_path: Path) -> None:
    path = tmp_path / "routes.csv"
    path.write_text("route,latitude,longitude\na,0,8\na,0,9\nb,1,8\nb,1,9\n")
    given = {"routes": str(path), "latitude": "lat", "longitude": "lon"}
    job = Job.of(APP, "json", given)
    tester, _ = trial(job)
    rows = [(0.01, 8.5), (0.98, 8.5), (None, 8.5)]
    lines = [
        {"time": f"{NOON:%FT%T}Z", "sensor": str(n), "value": 1, "lat": y, "lon": x}
        for n, (y, x) in enumerate(rows)
    ]
    tester.feed_messages([json.dumps(line).encode() for line in lines])
    results = tester.finish().windows().sort("sensor").select("sensor", pl.col("metres").round(1)).rows()
    assert results == [("0", round(0.01 * DEGREE, 1)), ("1", round(0.02 * DEGREE, 1))]
    before = tester.stream.definition()
    assert job.streams(Feed("t", "h:1"))["routes"].definition() == before
    path.write_text(path.read_text().replace("1,9", "1,9.5"))
    assert Job.of(APP, "json", given).streams(Feed("t", "h:1"))["routes"].definition() != before
    assert "routes" not in Job.of(APP, "json", {}).streams(Feed("t", "h:1"))

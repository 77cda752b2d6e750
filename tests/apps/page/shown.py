"""Apps with tables in memory, for a page without a broker: sensors, and one that has every kind of panel."""

from __future__ import annotations

import base64
import math
import random
import struct
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from streamgauge.apps.app import App, AppFormat, AppPart
from streamgauge.apps.page.served_app import ServedApp, tables_of
from streamgauge.apps.panels import (
    FunnelPanel,
    ImagesPanel,
    LightCurvePanel,
    LinesPanel,
    MapPanel,
    NumberPanel,
    ObjectPanel,
    RankedPanel,
    RowsPanel,
    SamplesPanel,
    SpreadPanel,
)
from streamgauge.apps.registry import app_of
from streamgauge.operators.definition.aggregates import (
    count,
    distinct,
    last,
    quantiles,
    sample,
    stratified_sample,
    top_k,
)
from streamgauge.operators.definition.aggregates import sum as total
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.rules.kinds.threshold import Ratio
from streamgauge.operators.testing import StreamTester
from streamgauge.queries.views.live import LiveTable

from ...queries.logs import Fed, deltas, messages

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = 75
NOW = START + timedelta(hours=3)
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
"""What somebody may write who knows that it will be shown on a page."""

_SOURCE = AppFormat(
    "none", "", lambda feed, settings: None, lambda path, head: False, lambda path, s: iter(())
)


def requests(seed: int = 5) -> pl.DataFrame:
    """Requests of three hosts, an hour and more; none of all in ten of the minutes."""
    chance = random.Random(seed)
    collected = []
    for minute in range(MINUTES):
        if 40 <= minute < 50:
            continue
        for _ in range(chance.randrange(60, 110)):
            host = chance.choice(["ash", "elm", "oak", "oak"])
            failed = chance.random() < (0.35 if host == "elm" and 55 <= minute < 65 else 0.02)
            collected.append(
                {
                    "at": START + timedelta(minutes=minute, seconds=chance.random() * 59),
                    "host": host,
                    "user": chance.randrange(4000),
                    "path": HOSTILE if chance.random() < 0.05 else f"/{int(chance.paretovariate(1.1)) % 30}",
                    "ms": chance.lognormvariate(3, 0.7),
                    "error": int(failed),
                }
            )
    return pl.DataFrame(collected).sort("at")


def gray(seed: int) -> str:
    """A small picture as base64 of PNG: a star with noise."""
    chance = random.Random(seed)
    rows = b""
    for y in range(21):
        line = [
            min(255, int(chance.random() * 60 + 190 * math.exp(-((x - 10) ** 2 + (y - 10) ** 2) / 6)))
            for x in range(21)
        ]
        rows += b"\0" + bytes(line)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 21, 21, 8, 0, 0, 0, 0)
    whole = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return base64.b64encode(whole).decode()


def nights(seed: int = 6) -> pl.DataFrame:
    """Detections and limits of six objects in two bands."""
    chance = random.Random(seed)
    collected = []
    for number in range(6):
        for visit in range(14):
            seen = visit > 3
            collected.append(
                {
                    "at": START + timedelta(minutes=5 * visit, seconds=number),
                    "object": f"SN{number}",
                    "band": "gr"[visit % 2],
                    "mag": 20.5 - 0.25 * visit + number * 0.1 + chance.gauss(0, 0.05) if seen else None,
                    "error": 0.08 if seen else None,
                    "limit": 20.8,
                    "ra": 60.0 * number + 3,
                    "dec": -50.0 + 20 * number,
                    "stamp": gray(number),
                    "bright": int(seen and visit > 8),
                    "step": 1 if not seen else 2 if visit <= 8 else 3,
                    "cut": "faint" if not seen else "young" if visit <= 8 else "passed",
                }
            )
    return pl.DataFrame(collected).sort("at")


def _by_host(rows: Stream) -> Stream:
    return (
        rows.group_by("host")
        .tumbling("1m", delay="5s")
        .agg(
            requests=count(),
            errors=total("error"),
            users=distinct("user"),
            ms=quantiles("ms"),
            paths=top_k("path", max_size=16),
            some=sample("path", k=20),
            each=stratified_sample("host", key="path", k=3),
        )
    )


def _objects(rows: Stream) -> Stream:
    return (
        rows.group_by("object", "band", "at")
        .tumbling("1m", delay="5s")
        .agg(
            mag=last("mag"),
            error=last("error"),
            limit=last("limit"),
            ra=last("ra"),
            dec=last("dec"),
            stamp=last("stamp"),
            seen=count(),
            bright=total("bright"),
        )
    )


def _cuts(rows: Stream) -> Stream:
    return rows.group_by("step", "cut").tumbling("1m", delay="5s").agg(alerts=count())


RULES = (Ratio("errors", value="errors", to="requests", above=0.1, clear=0.05, least=10),)

YARD = App(
    name="yard",
    title="Every kind of panel",
    formats=(_SOURCE,),
    parts=(
        AppPart("hosts", _by_host, lambda settings: RULES),
        AppPart("objects", _objects, at="at"),
        AppPart("cuts", _cuts),
    ),
    panels=(
        NumberPanel("Requests", "hosts", "requests"),
        NumberPanel("Users", "hosts", "users"),
        NumberPanel("Errors", "hosts", "errors", to="requests"),
        LinesPanel("Users by host", "hosts", "users", by="host"),
        LinesPanel("Errors in requests", "hosts", "errors", to="requests", by="host"),
        LinesPanel("Slowest by host", "hosts", "ms.p99", by="host", unit="ms"),
        RankedPanel("Hosts by latency", "hosts", "ms.p99", by="host", unit="ms"),
        SpreadPanel("Latency", "hosts", "ms", ranks=(0.5, 0.9, 0.99), unit="ms"),
        RankedPanel("Paths", "hosts", "paths", samples="each"),
        RankedPanel("Hosts by users", "hosts", "users", by="host", samples="some"),
        RowsPanel(
            "Hosts",
            "hosts",
            {
                "host": "host",
                "requests": "requests",
                "users": "users",
                "ms.p50": "median ms",
                "ms.p99": "p99",
            },
            order="-requests",
        ),
        SamplesPanel("Requests as they came", "hosts", "some"),
        FunnelPanel("Cuts by name", "cuts", value="alerts", by="cut", order="step"),
        FunnelPanel("Cuts", "objects", {"seen": "alerts", "bright": "brighter than 19"}),
        LightCurvePanel("Light curve", "objects", "object", "mag", "error", "limit", "band"),
        ImagesPanel("Cutouts", "objects", "object", {"stamp": "science"}),
        ObjectPanel(
            "Object",
            "objects",
            "object",
            "mag",
            "error",
            "limit",
            "band",
            images={"stamp": "science"},
            facts={"ra": "RA", "dec": "Dec"},
        ),
        MapPanel("Sky", "objects", "ra", "dec", "object", value="seen", sky=True),
        MapPanel("Earth", "objects", "ra", "dec", "object"),
    ),
)


def table(name: str, frame: pl.DataFrame, ask: Callable[[Stream], Stream]) -> tuple[LiveTable, Stream]:
    """A live table of rows, as from a topic, and its stream."""
    stream = ask(Stream.from_schema(dict(frame.schema), time="at"))
    fed = Fed(stream=stream)
    fed.table.name = name
    fed.feed(messages(deltas(frame, stream=stream, cut=2_000)))
    return fed.table, stream


def yard() -> tuple[ServedApp, dict[str, LiveTable]]:
    """The app that has every kind of panel, its tables, and its rules' alerts."""
    hosts, stream = table("yard.hosts", requests(), _by_host)
    objects, _ = table("yard.objects", nights(), _objects)
    cuts, _ = table("yard.cuts", nights(), _cuts)
    served = ServedApp.of_run(YARD, tables_of(YARD, "yard"))
    assert served.alerts is not None
    alerting = Alerting(list(RULES), [served.alerts], app="yard")
    StreamTester(stream, start=NOW, sinks=[alerting]).feed(requests())
    return served, {"yard.hosts": hosts, "yard.objects": objects, "yard.cuts": cuts}


def sensors() -> tuple[ServedApp, dict[str, LiveTable]]:
    """The app of sensors over readings of two of them; one is too hot for a while, the other falls silent."""
    chance = random.Random(3)
    collected: list[dict[str, Any]] = []
    for number in range(240):
        at = START + timedelta(seconds=15 * number)
        heat = 9.0 if 100 <= number < 140 else 0.0
        collected.append(
            {"at": at, "sensor": "boiler", "value": 24 + heat + math.sin(number / 20) + chance.random()}
        )
        if not 150 <= number < 215:
            collected.append({"at": at, "sensor": "cellar", "value": 14 + chance.random()})
    frame = pl.DataFrame(collected)
    app = app_of("iot")
    own = {"readings": "iot.readings", "days": "iot.days"}
    served = ServedApp.of_run(app, own, {"limit": "30", "hysteresis": "2", "dead": "10m", "jump": "10"})
    assert served.alerts is not None
    tables = {}
    for part in (part for part in app.parts if part.name in own):
        name = own[part.name]
        tables[name], stream = table(name, frame, part.ask)
        if rules := served.rules[part.name]:
            alerting = Alerting(list(rules), [served.alerts], part.at, app="iot")
            StreamTester(stream, start=NOW, sinks=[alerting]).feed(frame)
    return served, tables


def alert(rule: str, state: Any, minute: int, app: str = "yard") -> Alert:
    """What a rule of the yard says of the host elm."""
    at = int((START + timedelta(minutes=minute)).timestamp() * 1e6)
    return Alert(rule, "ratio", state, ("elm",), at, at - 60_000_000, 0.4, 0.4, 0.4, 0.1, f"it {state}", app)

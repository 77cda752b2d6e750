"""What people with sensors want to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ...operators.definition.aggregates import count, distinct, last, quantiles
from ...operators.definition.aggregates import max as max_
from ...operators.definition.aggregates import min as min_
from ...operators.definition.stream import Stream
from ...operators.rules.command import Command, command_of
from ...operators.rules.kinds.absence import Absence, Flatline
from ...operators.rules.kinds.change import Change
from ...operators.rules.kinds.clock_offset import ClockOffset
from ...operators.rules.kinds.rate import Rate
from ...operators.rules.kinds.threshold import Threshold
from ...operators.rules.kinds.unusual import Unusual
from ...operators.rules.rule import Rule
from ..app import App, AppPart, Settings, number
from ..panels import LinesPanel, MapPanel, NumberPanel, RowsPanel, SpreadPanel
from .example import EXAMPLE
from .formats import FORMATS
from .sparkplug.sequence import SequenceGap


def _measured(rows: Stream) -> Stream:
    """Select rows with numbers, for formats that also have messages about nodes or states."""
    if "state" in rows.columns:
        rows = rows.filter(pl.col("state").is_null())
    return rows.filter(pl.col("sensor").is_not_null()) if "unit" in rows.columns else rows


def _readings(rows: Stream) -> Stream:
    """Return every reading by itself, in order of its time; a repeated reading counts once."""
    return _measured(rows).group_by("sensor", "at").tumbling("10s", delay="10s").agg(value=last("value"))


def _clocks(rows: Stream) -> Stream:
    """Return the minimum number of seconds by which each sensor's readings are older than their messages."""
    behind = (pl.col("arrived") - pl.col("at")).dt.total_microseconds() / 1e6
    rows = _measured(rows).filter(pl.col("arrived").is_not_null()).with_columns(behind=behind)
    return rows.group_by("sensor").tumbling("1m", delay="10s").agg(behind=min_("behind"))


def _clock_rules(settings: Settings) -> Sequence[Rule]:
    """Return rules that fire when a sensor's clock has been behind or ahead of the others for five
    minutes."""
    limit = number(settings, "clock", 0)
    return [ClockOffset("clock", kind="clock", value="behind", at_least=limit, clear=limit / 2)]


def _days(rows: Stream) -> Stream:
    unit = {"unit": last("measured_in")} if "measured_in" in rows.columns else {}
    return (
        _measured(rows)
        .group_by("sensor")
        .tumbling("1d", delay="10s")
        .agg(readings=count(), low=min_("value"), high=max_("value"), spread=quantiles("value"), **unit)
    )


def _within_extremes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Limit quantiles and their bounds to the range of the lowest and the highest value, which are exact."""
    for row in rows:
        low, high = row["low"], row["high"]
        for quantile in (row["spread"] or {}).get("quantiles") or () if low is not None else ():
            quantile |= {name: min(max(quantile[name], low), high) for name in ("value", "lower", "upper")}
    return rows


def _states(rows: Stream) -> Stream:
    """Count how often each sensor reported each of its states."""
    stated = rows.filter(pl.col("state").is_not_null())
    return (
        stated.group_by("sensor", "state").tumbling("1d", delay="10s").agg(reports=count(), last=max_("at"))
    )


def _watched(rows: Stream) -> Stream:
    """Return for every state by itself whether it is a watched state."""
    each = rows.explode("watched").with_columns(pl.col("watched").struct.unnest())
    each = each.filter(pl.col("holds").is_not_null())
    return each.group_by("sensor", "condition", "at").tumbling("10s", delay="10s").agg(holds=last("holds"))


def _watched_rules(settings: Settings) -> Sequence[Rule]:
    """Return rules that fire when a sensor has been in a state for long, such as a door that stays open."""
    hold, release = settings.get("state_hold", "0s"), settings["release"]
    return [Threshold("state", kind="state", value="holds", at_least=1, hold=hold, release=release)]


def _fleets(rows: Stream) -> Stream:
    grouped = rows.filter(pl.col("group").is_not_null(), pl.col("value").is_not_null())
    return (
        grouped.group_by("group")
        .tumbling("1h", delay="10s")
        .agg(readings=count(), sensors=distinct("sensor"), spread=quantiles("value"))
    )


def _fences(rows: Stream) -> Stream:
    """Return for every place by itself whether it lies in each fence."""
    each = rows.explode("fences").with_columns(
        fence=pl.col("fences").struct.field("fence"), inside=pl.col("fences").struct.field("inside")
    )
    each = each.filter(pl.col("inside").is_not_null())
    return each.group_by("sensor", "fence", "at").tumbling("10s", delay="10s").agg(inside=last("inside"))


def _places(rows: Stream) -> Stream:
    """Return each sensor's last place, for a map."""
    placed = rows.filter(pl.col("latitude").is_not_null(), pl.col("longitude").is_not_null())
    return (
        placed.group_by("sensor")
        .tumbling("1m", delay="10s")
        .agg(latitude=last("latitude"), longitude=last("longitude"), value=last("value"))
    )


def _routes(rows: Stream) -> Stream:
    """Return every place by itself, with its distance from its route."""
    each = rows.filter(pl.col("off_route").is_not_null()).group_by("sensor", "at")
    return each.tumbling("10s", delay="10s").agg(
        metres=last("off_route"), route=last("group"), latitude=last("latitude"), longitude=last("longitude")
    )


def _route_rules(settings: Settings) -> Sequence[Rule]:
    """Return a rule that fires when something has been off its route for a while, and clears when it is
    back."""
    off, back = number(settings, "off_route", 0), number(settings, "on_route", 0)
    return [
        Threshold(
            "off route",
            kind="route",
            value="metres",
            above=off,
            clear=back,
            hold=settings["off_hold"],
            release=settings["release"],
            report=("route",),
        )
    ]


def _nodes(rows: Stream) -> Stream:
    """Return every message of a node or device by itself: its number, and whether it is a birth or a
    death."""
    each = rows.with_columns(at=pl.col("arrived")).group_by("node", "unit", "seq", "at")
    return each.tumbling("10s", delay="10s").agg(dead=last("dead"), birth=last("birth"))


def _node_rules(settings: Settings) -> Sequence[Rule]:
    """Return rules by which a node or device is dead from its death to its next birth."""
    return [
        Threshold("dead node", kind="dead", value="dead", at_least=1, per=("unit",)),
        SequenceGap("sequence", kind="sequence"),
    ]


def _fence_rules(settings: Settings) -> Sequence[Rule]:
    """Return rules that fire when a sensor enters a fence, and clear when it leaves it."""
    hold, release = settings["hold"], settings["release"]
    return [Threshold("fence", kind="fence", value="inside", at_least=1, hold=hold, release=release)]


def _rules(settings: Settings) -> Sequence[Rule]:
    """Return the rules; a rule with an empty setting is left out."""
    rules: list[Rule] = [*_limits(settings)]
    unit = settings["value_unit"]
    if settings["dead"]:
        rules.append(Absence("dead sensor", kind="dead", longer=settings["dead"]))
    if settings["stuck"]:
        stuck = Flatline("stuck sensor", kind="stuck", value="value", longer=settings["stuck"], unit=unit)
        rules.append(stuck)
    if settings["jump"]:
        rules.append(
            Change(
                "jump",
                kind="jump",
                value="value",
                against="last",
                by="distance",
                above=number(settings, "jump"),
                every=True,
                mute=_JUMPS,
                unit=unit,
            )
        )
    if settings["rate"]:
        limit = number(settings, "rate", 0)
        rules.append(Rate("rate", kind="rate", value="value", above=limit, unit=unit, hold=settings["hold"]))
    if settings["deviation"]:
        rules.append(
            Unusual(
                "unusual",
                kind="unusual",
                value="value",
                above=number(settings, "deviation", 1),
                release=settings["quiet"],
                zone=settings["zone"],
                unit=unit,
            )
        )
    return rules


def _limits(settings: Settings) -> Iterator[Rule]:
    """Return rules for a highest value, `limit` or `above`, and a lowest one, `below`."""
    hysteresis = number(settings, "hysteresis", 0)
    times: dict[str, Any] = {
        "hold": settings["hold"],
        "release": settings["release"],
        "unit": settings["value_unit"],
    }
    for setting, field in (("above", "above"), ("limit", "at_least")):
        if settings[setting]:
            limit = number(settings, setting)
            clear = limit - hysteresis if hysteresis else None
            command = [replace(one, **_AIR_CONDITIONING) for one in _commands(settings)]
            yield Threshold("limit", value="value", clear=clear, command=command, **{**times, field: limit})
            break
    if settings["below"]:
        limit = number(settings, "below")
        clear = limit + hysteresis if hysteresis else None
        yield Threshold("low", value="value", below=limit, clear=clear, **times)


_AIR_CONDITIONING: Mapping[str, Any] = {"fired": {"ac": "on"}, "cleared": {"ac": "off"}}


def _commands(settings: Settings) -> Sequence[Command]:
    """Return the outlets of `commands`: a topic, unless the setting is a web or MQTT address."""
    place = settings["commands"]
    if not place:
        return ()
    if not place.startswith(("topic:", "http://", "https://", "mqtt://", "mqtts://")):
        place = f"topic:{place}"
    return (command_of(place),)


_JUMPS = 0.2
"""A sensor that jumps on a larger share of its readings is of another kind or unit, such as a counter."""
_UNIT = "{value_unit}"

APP = App(
    name="iot",
    title="Sensors: limits with hysteresis, dead, stuck and jumping ones",
    formats=FORMATS,
    kinds={"sequence": SequenceGap},
    parts=(
        AppPart("readings", _readings, _rules, at="at", shown=False, keep_late=True),
        AppPart("days", _days, derive=_within_extremes),
        AppPart("states", _states, wanted=lambda settings: "state_hold" in settings),
        AppPart(
            "watched",
            _watched,
            _watched_rules,
            at="at",
            shown=False,
            keep_late=True,
            wanted=lambda settings: bool(settings.get("state")),
        ),
        AppPart("fleets", _fleets, wanted=lambda settings: bool(settings.get("group"))),
        AppPart("places", _places, shown=False, wanted=lambda settings: settings["map"] == "yes"),
        AppPart(
            "fences",
            _fences,
            _fence_rules,
            at="at",
            shown=False,
            keep_late=True,
            wanted=lambda settings: bool(settings["fences"]),
        ),
        AppPart(
            "routes",
            _routes,
            _route_rules,
            at="at",
            shown=False,
            keep_late=True,
            wanted=lambda settings: bool(settings["routes"]),
        ),
        AppPart(
            "nodes", _nodes, _node_rules, at="at", shown=False, wanted=lambda settings: "births" in settings
        ),
        AppPart(
            "clocks",
            _clocks,
            _clock_rules,
            shown=False,
            keep_late=True,
            wanted=lambda settings: bool(settings["clock"]),
        ),
    ),
    settings={
        "limit": "30",
        "above": "",
        "below": "",
        "hysteresis": "0",
        "hold": "0s",
        "release": "0s",
        "dead": "2h",
        "stuck": "6h",
        "clock": "20",
        "jump": "",
        "rate": "",
        "deviation": "1.2",
        "quiet": "12h",
        "zone": "UTC",
        "value_unit": "",
        "commands": "",
        "map": "",
        "fences": "",
        "routes": "",
        "off_route": "100",
        "on_route": "50",
        "off_hold": "1m",
    },
    commands=lambda settings, rule: _commands(settings),
    example=EXAMPLE,
    panels=(
        LinesPanel("Readings", "readings", "value", by="sensor", unit=_UNIT),
        MapPanel("Places", "places", "longitude", "latitude", "sensor", value="value", unit=_UNIT),
        MapPanel(
            "Positions by distance from the route",
            "routes",
            "longitude",
            "latitude",
            "sensor",
            value="metres",
            unit="m",
        ),
        LinesPanel("Distance from the route", "routes", "metres", by="sensor", unit="m"),
        NumberPanel("All readings", "days", "readings", unit="readings"),
        SpreadPanel("Distribution of readings", "days", "spread", unit=_UNIT),
        RowsPanel(
            "Sensors",
            "days",
            {
                "sensor": "sensor",
                "readings": "readings",
                "low": "lowest",
                "spread.p50": "median",
                "high": "highest",
            },
            order="-readings",
            units={"low": _UNIT, "spread.p50": _UNIT, "high": _UNIT},
            between={"spread.p50": ("low", "high")},
        ),
        RowsPanel(
            "States",
            "states",
            {"sensor": "sensor", "state": "state", "reports": "reports"},
            order="-reports",
        ),
    ),
)

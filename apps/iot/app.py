"""What people with sensors want to be told."""

from __future__ import annotations

from collections.abc import Sequence

from ...operators.definition.aggregates import count, last, quantiles
from ...operators.definition.aggregates import max as max_
from ...operators.definition.aggregates import min as min_
from ...operators.definition.stream import Stream
from ...operators.rules.absence import Absence, Flatline
from ...operators.rules.alerting import Outlet
from ...operators.rules.change import Change
from ...operators.rules.rule import Rule
from ...operators.rules.threshold import Threshold
from ...operators.rules.to_topic import CommandTopic
from ..app import App, AppPart, Settings
from ..page.panels import LinesPanel, NumberPanel, RowsPanel, SpreadPanel
from .example import EXAMPLE
from .formats import FORMATS


def _readings(rows: Stream) -> Stream:
    """Every reading by itself, in the order of its time; what a sensor says twice counts once."""
    return rows.group_by("sensor", "at").tumbling("10s", delay="10s").agg(value=last("value"))


def _days(rows: Stream) -> Stream:
    return (
        rows.group_by("sensor")
        .tumbling("1d", delay="10s")
        .agg(readings=count(), low=min_("value"), high=max_("value"), spread=quantiles("value"))
    )


def _rules(settings: Settings) -> Sequence[Rule]:
    limit, hysteresis = (_number(settings, name) for name in ("limit", "hysteresis"))
    return [
        Threshold(
            "limit",
            value="value",
            at_least=limit,
            clear=limit - hysteresis if hysteresis else None,
            hold=settings["hold"],
            release=settings["release"],
        ),
        Absence("dead sensor", kind="dead", longer=settings["dead"]),
        Flatline("stuck sensor", kind="stuck", value="value", longer=settings["stuck"]),
        Change(
            "jump",
            kind="jump",
            value="value",
            against="last",
            by="distance",
            above=_number(settings, "jump"),
            every=True,
        ),
        Change(
            "unusual",
            kind="unusual",
            value="value",
            against="hour",
            over=30,
            by="deviation",
            above=_number(settings, "deviation"),
            clear=_number(settings, "deviation") / 2,
            hold="3h",
            release="1d",
            warm=10,
        ),
    ]


def _number(settings: Settings, name: str) -> float:
    try:
        return float(settings[name])
    except ValueError:
        raise ValueError(f"--set {name}={settings[name]}: it is a number") from None


def _commands(settings: Settings) -> Sequence[Outlet]:
    if not settings["commands"]:
        return ()
    ac = {"fired": {"ac": "on"}, "cleared": {"ac": "off"}}
    return [CommandTopic(settings["commands"], {"limit": ac})]


APP = App(
    name="iot",
    title="Sensors: limits with hysteresis, dead, stuck and jumping ones",
    formats=FORMATS,
    parts=(AppPart("readings", _readings, _rules, at="at", shown=False), AppPart("days", _days)),
    settings={
        "limit": "30",
        "hysteresis": "0",
        "hold": "0s",
        "release": "0s",
        "dead": "2h",
        "stuck": "6h",
        "jump": "10",
        "deviation": "3",
        "commands": "",
    },
    outlets=_commands,
    example=EXAMPLE,
    panels=(
        LinesPanel("Readings", "readings", "value", by="sensor"),
        NumberPanel("Readings in all", "days", "readings"),
        SpreadPanel("How readings are spread", "days", "spread"),
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
        ),
    ),
)

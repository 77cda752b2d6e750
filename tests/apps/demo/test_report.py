"""A demo's end for people: one screen for all apps, or every answer."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from streamgauge.apps.demo.report import DemoReport
from streamgauge.apps.registry import APPS


def alert(rule: str, key: Any, why: str) -> dict[str, Any]:
    return {
        "rule": rule,
        "key": key,
        "why": why,
        "at": "2026-01-01T00:00:00+00:00",
        "cleared": None,
    }


def result(app: str, alerts: list[dict[str, Any]], inside: list[bool], ok: bool = True) -> dict[str, Any]:
    account = {"read": 1_234, "counted": 1_234, "filtered": 0, "late": 0, "dead_lettered": 0}
    rows = [{"visitors": {"estimate": 5.0, "exact": 5, "inside_bounds": one}} for one in inside]
    return {
        "app": app,
        "engine": "local",
        "account": account,
        "dead_letters": [],
        "alerts": alerts,
        "answers": {"minutes": [] if not inside else [{"n": 1, "nested": rows}]},
        "all_inside_bounds": all(inside),
        "put_in": [{"rule": "hot", "key": "a", "fired": ok}],
    }


def shown(results: dict[str, Any], width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(DemoReport(results))
    return out.getvalue().splitlines()


def test_all_apps_fit_on_one_screen() -> None:
    many = [alert("hot", f"sensor-{n}", "31 degrees: above 30, " + "and more of it " * 3) for n in range(40)]
    lines = shown({name: result(name, many, [True] * 7) for name in APPS})
    assert len(lines) <= 50 and max(map(len, lines)) <= 80
    (first,) = (line for line in lines if line.startswith("iot"))
    assert first == "iot (local): 1,234 messages, 40 alerts, 7 of 7 estimates inside their bounds"
    assert sum("hot of sensor-" in line for line in lines) == 3 * len(APPS)
    assert "  in all 40 × hot" in lines


def test_a_rule_that_fires_often_hides_no_other() -> None:
    alerts = [*(alert("hot", str(n), "…") for n in range(9)), alert("cold", "late", "3 degrees: below 4")]
    lines = shown({"iot": result("iot", alerts, [True, False], ok=False)})
    assert "  cold of late: 3 degrees: below 4" in lines
    assert any("1 of 2 estimates inside their bounds" in line for line in lines)
    assert "Did not fire: hot of a." in lines


def test_reasons_are_wrapped_and_not_cut_and_keys_are_read_as_text() -> None:
    why = "1,204 posts, 31 times the usual 39: " + "and more of it " * 20
    lines = shown({"trending": result("trending", [alert("trend", ["tag", "aurora", None], why)], [True])})
    at = next(number for number, line in enumerate(lines) if "trend of tag, aurora, None: 1,204" in line)
    said = [line for line in lines[at:] if line.startswith("  ")]
    assert why.strip() in " ".join(line.strip() for line in said) and max(map(len, lines)) <= 80
    assert all(line.startswith("    ") for line in said[1:])

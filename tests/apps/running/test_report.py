"""What people read of a replay: no column of what a recording doesn't have."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from streamgauge.apps.registry import app_of
from streamgauge.apps.running.report import AppReport
from streamgauge.operators.rules.late_readings import LateReadings


def shown(result: dict[str, Any]) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(AppReport(app_of("trending"), result))
    return out.getvalue()


def test_columns_that_say_nothing_are_left_out() -> None:
    nobody = {"estimate": 0.0, "lower": 0.0, "upper": 0.0, "exact": 0, "inside_bounds": True}
    rows = [
        {
            "window_start": f"2026-01-01T00:0{at}:00+00:00",
            "window_end": f"2026-01-01T00:0{at + 1}:00+00:00",
            "posts": at,
            "authors": nobody,
            "tags": [],
            "sample": {"n": 0, "values": []},
            "links": [{"item": "a.example", **nobody}] if at else [],
        }
        for at in range(2)
    ]
    result: dict[str, Any] = {
        "engine": "local",
        "account": {"read": 1, "counted": 1, "filtered": 0, "late": 0, "dead_lettered": 0},
        "dead_letters": [],
        "alerts": [],
        "answers": {"volume": rows, "top": []},
        "all_inside_bounds": True,
    }
    reported = shown(result)
    assert "posts" in reported and "links" in reported and "00:00 – 00:01" in reported
    assert "Every estimate" in reported
    assert "authors" not in reported and "tags" not in reported and "sample" not in reported
    nothing = {**result, "account": dict.fromkeys(result["account"], 0), "answers": {"volume": []}}
    refused = {**result["account"], "counted": 0, "dead_lettered": 1}
    none = shown({**result, "account": refused, "all_inside_bounds": None})
    assert "No message was counted, so there is nothing to compare." in none and "Every estimate" not in none
    assert "The recording holds no message." in shown(nothing) and "estimate" not in shown(nothing)


def test_keys_of_several_parts_are_read_as_text() -> None:
    alert = {
        "rule": "big",
        "key": ["ABC", None, 1000],
        "at": "2026-01-01T00:00:00+00:00",
        "cleared": None,
        "why": "…",
    }
    account = {"read": 1, "counted": 1, "filtered": 0, "late": 0, "dead_lettered": 0}
    result = {"engine": "local", "account": account, "dead_letters": [], "alerts": [alert], "answers": {}}
    assert " ABC, None, 1000 " in shown({**result, "all_inside_bounds": True})


def test_readings_that_no_rule_has_seen_are_named() -> None:
    account = {"read": 1, "counted": 1, "filtered": 0, "late": 0, "dead_lettered": 0}
    late = LateReadings({}, {'["<b>"]': 1})
    result = {"engine": "local", "account": account, "dead_letters": [], "alerts": [], "answers": {}}
    reported = shown({**result, "all_inside_bounds": True, "late_readings": late.to_dict()})
    assert "1 reading was too late for their keys' order, so no rule has seen them: <b> 1;" in reported

"""What people read of a replay: no column of what a recording doesn't tell."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from streamgauge.apps.registry import app_of
from streamgauge.apps.running.report import AppReport


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
    told = shown(result)
    assert "posts" in told and "links" in told and "00:00 – 00:01" in told
    assert "Every estimate" in told
    assert "authors" not in told and "tags" not in told and "sample" not in told
    nothing = {**result, "account": dict.fromkeys(result["account"], 0), "answers": {"volume": []}}
    assert "The recording holds no message." in shown(nothing) and "estimate" not in shown(nothing)

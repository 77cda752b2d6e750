"""What the summary of a run says: every answer with its bounds beside the exact one, and whether all hold."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamgauge.apps.trending.answers import Bounded, Tag, windows
from streamgauge.apps.trending.exact import Exact
from streamgauge.apps.trending.summary import Summary
from streamgauge.operators.sketching.accounting import Account

from .posts import STREAM, counted, line, shown, sketched, snapshot


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"posts": 39}, "posts"),
        ({"authors": Bounded(30, 29.5, 31)}, "authors"),
        ({"tags": (Tag(9, 8, 9, "a"),)}, "tag"),
        ({"tags": ()}, "missed"),
    ],
)
def test_the_summary_notices_an_answer_outside_its_bounds(change: dict, wrong: str) -> None:
    lines = [line(n % 10, f"author {n % 32}", "a") for n in range(40)]
    table, account = sketched(lines)
    (window,) = windows(table)
    exact = counted(lines)
    right = Summary.of("local", account, 1.0, [window], exact)
    assert right.all_inside_bounds
    assert right.to_dict()["windows"][0]["top_tags"] == [
        {"tag": "a", "estimate": 40, "lower": 40, "upper": 40, "exact": 40, "inside_bounds": True}
    ]
    summary = Summary.of("local", account, 1.0, [replace(window, **change)], exact)
    assert not summary.all_inside_bounds and not summary.to_dict()["windows"][0]["inside_bounds"]


def test_a_window_that_only_one_side_has_is_wrong() -> None:
    lines = [line(0), line(15)]
    table, account = sketched(lines)
    found = windows(table)
    assert not Summary.of("local", account, 1.0, found[:1], counted(lines)).all_inside_bounds
    assert not Summary.of("local", account, 1.0, found, counted(lines[:1])).all_inside_bounds


def test_a_wrong_account_is_told() -> None:
    lines = [line(0)]
    table, _ = sketched(lines)
    summary = Summary.of("local", Account(read=2, counted=1, late=1), 1.0, windows(table), counted(lines))
    assert summary.all_inside_bounds and not summary.accounts_agree
    assert "do not hold" in shown(summary, 120)


def test_the_json_has_what_machines_need() -> None:
    lines = [line(0, "ann", "a"), line(1, "bob", "b"), b"{"]
    table, account = sketched(lines)
    told = json.loads(json.dumps(Summary.of("spark", account, 2.0, windows(table), counted(lines)).to_dict()))
    assert told["engine"] == "spark" and told["messages_per_second"] == 1.5
    assert [told[key] for key in ("read", "counted", "filtered", "late", "dead_lettered")] == [3, 2, 0, 0, 1]
    (window,) = told["windows"]
    assert (window["start"], window["end"]) == ("2026-06-01T12:00:00Z", "2026-06-01T12:00:10Z")
    assert window["posts"] == 2 and window["authors"]["exact"] == 2
    assert told["all_inside_bounds"] is True


def test_the_summary_of_a_large_run_is_not_cut_off_at_80_columns() -> None:
    made = snapshot(3)
    summary = Summary.of("Spark", made.account, 30.0, made.windows, Exact(STREAM))
    lines = shown(summary, 80, 60).splitlines()
    assert all(len(each) <= 80 for each in lines)
    (row,) = (each for each in lines if each.strip().startswith("12:00:10"))
    assert "1,234,567 ✗" in row and "640,000–670,000 ✗" in row and "0/10 ✗" in row


def test_the_summary_reads_well_at_80_columns(generated: list[bytes]) -> None:
    table, account = sketched(generated)
    text = shown(Summary.of("Spark", account, 2.0, windows(table), counted(generated)), 80, 60)
    assert all(len(each) <= 80 for each in text.splitlines())
    assert "answers hold" in text and "10/10 ✓" in text and "✗" not in text

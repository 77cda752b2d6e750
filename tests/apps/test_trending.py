"""Trending tags: sketches against exact answers, and what the summary and the view say of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

from streamgauge.apps.replay.generated import Generated
from streamgauge.apps.replay.load import Load
from streamgauge.apps.trending.answers import Bounded, Tag, Window, windows
from streamgauge.apps.trending.exact import Exact
from streamgauge.apps.trending.stream import SCHEMA, asked
from streamgauge.apps.trending.summary import Summary
from streamgauge.apps.trending.view import Snapshot, View, bar
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.sketcher import Sketcher

STREAM = asked(Stream.from_batches(SCHEMA, time="created_at"))
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def line(second: float, author: str = "ann", *tags: str, kind: str = "post", id: str = "") -> bytes:
    at = (NOON + timedelta(seconds=second)).isoformat()
    return json.dumps({"id": id, "kind": kind, "author": author, "created_at": at, "tags": tags}).encode()


def sketched(lines: list[bytes]) -> tuple[pa.Table, Account]:
    """One partition's lines through the step that every engine uses; dead letters told by Python's json."""
    posts: list[dict[str, Any]] = []
    for each in lines:
        try:
            posts.append(json.loads(each))
        except ValueError:
            continue
    sketcher = Sketcher(STREAM)
    account = sketcher.add(pl.DataFrame(posts, schema=SCHEMA), PartitionTime())
    dead = len(lines) - len(posts)
    return sketcher.take(), account + Account(read=dead, dead_lettered=dead)


def counted(lines: list[bytes]) -> Exact:
    exact = Exact(STREAM)
    for each in lines:
        exact.add(0, each)
    return exact


@pytest.fixture(scope="module")
def generated() -> list[bytes]:
    source = Generated(Load(rate=2_000, seed=3, start=NOON), posts=40_000)
    return [value for batch in source.batches() for value in batch.values.to_pylist()]


def test_generated_posts_lie_inside_their_bounds(generated: list[bytes]) -> None:
    table, account = sketched(generated)
    exact = counted(generated)
    summary = Summary.of("local", account, 2.0, windows(table), exact)
    assert account == exact.account
    assert account.balanced and account.late > 10 and account.dead_lettered > 10
    assert summary.all_inside_bounds and summary.accounts_agree
    assert len(summary.windows) >= 3 and all(len(one.window.tags) == 10 for one in summary.windows)
    assert summary.repeated > 100


def test_a_post_is_late_by_its_own_partition_alone() -> None:
    exact = Exact(STREAM)
    for second in (0, 30, 19.999, 9):
        exact.add(0, line(second))
    exact.add(1, line(9))
    assert exact.account == Account(read=5, counted=3, late=2)
    assert sorted(exact.windows) == [NOON, NOON + timedelta(seconds=30)]


@pytest.mark.parametrize("seed", range(5))
def test_jumps_of_time_are_believed_as_the_engines_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    hours = np.cumsum((random.random(400) < 0.03) * random.integers(0, 30, 400))
    seconds = np.arange(400) + hours * 3_600 - random.exponential(20, 400)
    seconds[random.random(400) < 0.1] += 100_000 * (seed > 1)
    lines = [line(second) for second in seconds.tolist()]
    exact = counted(lines)
    assert sketched(lines)[1] == exact.account
    assert exact.account.late > 0


def test_likes_are_filtered_whatever_their_time_and_move_no_clock() -> None:
    lines = [
        line(0),
        line(60, kind="like"),
        b'{"kind":"like"}',
        line(1),
        line(60),
        line(1),
        line(1, kind="like"),
    ]
    exact = counted(lines)
    assert exact.account == Account(read=7, counted=3, filtered=3, late=1)
    assert sketched(lines)[1] == exact.account


@pytest.mark.parametrize(
    "value",
    [
        b"",
        None,
        b"{broken",
        b"[1]",
        b'"text"',
        b"\xff\xfe{}",
        b'{"kind":"post"}',
        b'{"kind":"post","created_at":"soon"}',
    ],
)
def test_what_is_no_post_is_a_dead_letter(value: bytes | None) -> None:
    exact = Exact(STREAM)
    exact.add(0, value)
    assert exact.account == Account(read=1, dead_lettered=1)


def test_a_clock_far_ahead_is_broken_and_moves_nothing() -> None:
    exact = Exact(STREAM)
    stamp = int(NOON.timestamp() * 1000)
    exact.add(0, line(3_601), stamp)
    exact.add(0, line(0), stamp)
    assert exact.account == Account(read=2, counted=1, dead_lettered=1)


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


def shown(what: object, width: int, height: int = 24) -> str:
    console = Console(width=width, height=height, color_system=None, file=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def snapshot(n_windows: int, n_tags: int = 10) -> Snapshot:
    tags = tuple(
        Tag(100_000 / r, 99_000 / r, 100_500 / r, f"標籤 a longer tag number {r}")
        for r in range(1, n_tags + 1)
    )
    made = [
        Window(
            NOON + timedelta(seconds=10 * n),
            NOON + timedelta(seconds=10 * n + 10),
            1_234_567,
            Bounded(654_321, 640_000, 670_000),
            tags,
            ("first\npost", "second"),
        )
        for n in range(n_windows)
    ]
    account = Account(9_000_000, 8_000_000, 900_000, 90_000, 10_000)
    return Snapshot("Spark", 75, 90, made, NOON + timedelta(seconds=20), account, 123_456, 7, "Ctrl-C stops")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (120, 30), (200, 60)])
@pytest.mark.parametrize("n_windows", [0, 1, 9])
def test_the_view_fits_the_terminal_and_shows_everything(width: int, height: int, n_windows: int) -> None:
    lines = shown(View(snapshot(n_windows)), width, height).splitlines()
    text = "\n".join(lines)
    assert len(lines) <= height
    equation = "9,000,000 read = 8,000,000 counted + 900,000 filtered + 90,000 late + 10,000 dead"
    assert (equation if width > 90 else equation.replace(",", "")) in text and "✓" in text
    assert "123,456 posts/s" in text and "01:15 of 01:30" in text
    if n_windows:
        assert "99,000–100,500" in text and "640,000–670,000" in text
    if width >= 120 and n_windows:
        assert "first post" in text


def test_texts_of_strangers_steer_nothing() -> None:
    made = snapshot(1)
    nasty = "\x1b[2J[red]tag[/red]\N{RIGHT-TO-LEFT OVERRIDE}\a"
    window = replace(made.windows[0], tags=(Tag(1, 1, 1, nasty),), sample=(f"so proud ❤️ {nasty}",))
    summary = Summary.of("Spark", made.account, 30.0, [window], Exact(STREAM))
    for width, what in ((120, View(replace(made, windows=[window]))), (80, summary)):
        text = shown(what, width, 30)
        assert "#[2J[red]tag[/red]" in text
        assert not set(text) & {"\x1b", "\a", "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{VARIATION SELECTOR-16}"}


def test_the_summary_of_a_large_run_is_not_cut_off_at_80_columns() -> None:
    made = snapshot(3)
    summary = Summary.of("Spark", made.account, 30.0, made.windows, Exact(STREAM))
    lines = shown(summary, 80, 60).splitlines()
    assert all(len(each) <= 80 for each in lines)
    (row,) = (each for each in lines if each.strip().startswith("12:00:10"))
    assert "1,234,567 ✗" in row and "640,000–670,000 ✗" in row and "0/10 ✗" in row


def test_a_bar_is_solid_to_the_lower_bound_and_shaded_to_the_upper() -> None:
    assert bar(Tag(60, 50, 100, "a"), 100, 20).plain == "█" * 10 + "░" * 10
    assert bar(Tag(50, 50, 50, "a"), 100, 20).plain == "█" * 10
    assert bar(Tag(1, 1, 1, "a"), 1000, 10).plain == "▏"


def test_the_summary_reads_well_at_80_columns(generated: list[bytes]) -> None:
    table, account = sketched(generated)
    text = shown(Summary.of("Spark", account, 2.0, windows(table), counted(generated)), 80, 60)
    assert all(len(each) <= 80 for each in text.splitlines())
    assert "answers hold" in text and "10/10 ✓" in text and "✗" not in text

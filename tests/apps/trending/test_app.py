"""The app's parts on posts whose trends, quakes and moods are known: what fires, and what does not."""

from __future__ import annotations

import csv
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.largest import largest
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.exact import all_inside, with_exact
from streamgauge.operators.rules.row import Row

from .parts import MINUTE, post, ran
from .posts import NOON


def streamed(seed: int, windows: int = 40) -> tuple[list[dict[str, Any]], set[tuple[str, int]], set[str]]:
    """Posts with Zipf's tags; bursts of tags by many authors (tag and window), and floods by a few."""
    dice, plain = np.random.default_rng(seed), random.Random(seed)
    result, bursts, floods = [], set(), set()

    def add(window: int, author: str, tag: str) -> None:
        at = NOON + 5 * MINUTE * window + timedelta(seconds=plain.random() * 299)
        result.append(post(at, author, "", tag))

    for window in range(windows):
        for tag in dice.zipf(1.3, 300):
            add(window, f"a{plain.randrange(5_000)}", f"t{min(tag, 2_000)}")
    for window in plain.sample(range(6, windows - 2, 3), windows // 5):
        tag = plain.choice([f"new{window}", f"t{plain.randrange(30, 2_000)}"])
        bursts.add((tag, window + 1))
        for number in range(40):
            add(window, f"b{number}", tag)
    for window in plain.sample(range(6, windows - 2), windows // 7):
        floods.add(f"flood{window}")
        for number in range(80):
            add(window, f"f{number % 4}", f"flood{window}")
    return sorted(result, key=lambda one: one["created_at"]), bursts, floods


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_bursts_of_many_are_trends_and_floods_by_few_are_not(seed: int) -> None:
    posts, bursts, floods = streamed(seed)
    _, alerts = ran("trends", posts)
    fired = [alert for alert in alerts if alert.state == "fired"]
    reported = {
        (alert.key[1], round((alert.at_us / 1e6 - NOON.timestamp()) / 300))
        for alert in fired
        if alert.key[0] == "tag"
    }
    hit = reported & bursts
    assert len(hit) >= 0.9 * len(bursts) and len(hit) >= 0.9 * len(reported)
    assert not {tag for tag, _ in reported} & floods
    assert all(alert.lower <= alert.value <= alert.upper for alert in fired)


def test_answers_lie_inside_their_bounds_and_muted_posts_are_in_none() -> None:
    posts, _, _ = streamed(7, 20)
    posts += [post(NOON + MINUTE * n, f"m{n}", "a spoiler", "secret") for n in range(60)]
    posts.sort(key=lambda one: one["created_at"])
    values = [Message(json.dumps(one).encode()) for one in posts]
    given = {"muted": "spoiler"}
    for part in ("top", "trends", "volume"):
        tester, _ = ran(part, posts, given=given)
        answers = with_exact(tester.stream, tester.tables().to_arrow(), values)
        assert answers and all_inside(answers)
        if part == "top":
            assert all(item["item"] != "secret" for one in answers for item in one["tags"])
            exact = [item["exact"] for item in answers[0]["tags"]]
            assert exact == sorted(exact, reverse=True) and len(exact) == 10


def test_only_the_rows_with_most_authors_are_shown() -> None:
    posts, _, _ = streamed(7, 15)
    tester, _ = ran("trends", posts)
    (part,) = (one for one in app_of("trending").parts if one.name == "trends")
    assert part.most is not None
    shown = largest(tester.tables().to_arrow(), *part.most)
    own: dict[Any, dict[str, set[str]]] = {}
    for one in posts:
        window = (datetime.fromisoformat(one["created_at"]) - NOON) // (5 * MINUTE)
        own.setdefault(window, {}).setdefault(one["tags"][0], set()).add(one["author"])
    for window, tags in own.items():
        start = NOON + 5 * MINUTE * window
        rows = shown.select(["window_start", "kind", "term"]).to_pylist()
        named = [row["term"] for row in rows if row["kind"] == "tag" and row["window_start"] == start]
        least = sorted((len(authors) for authors in tags.values()), reverse=True)[:10][-1]
        assert len(named) == 10 and all(len(tags[tag]) >= least for tag in named)


def test_the_same_event_twice_counts_once(recordings: Path) -> None:
    path = recordings / "social" / "jetstream_expected_v1.jsonl"
    lines = path.read_bytes().splitlines()
    once, _ = ran("volume", lines, "jetstream")
    twice, _ = ran("volume", [*lines, *lines], "jetstream")
    assert twice.account.counted == once.account.counted == 17
    assert twice.account.filtered == 2 * once.account.filtered + 17
    first, second = once.windows(), twice.windows()
    assert second.equals(first) and first["posts"].sum() == 17
    for name, exact in (("events", 17), ("authors", 15)):
        assert round(first[name].struct.field("estimate").sum()) == exact


def test_labelled_windows_of_counts_are_found_with_few_false_episodes(recordings: Path) -> None:
    path = recordings / "social" / "Twitter_volume_AAPL.csv"
    labels = json.loads((recordings / "nab_windows.json").read_text())["realTweets/Twitter_volume_AAPL.csv"]
    (rule,) = Job.of(app_of("trending"), recording=path).rules["volume"]
    with path.open() as file:
        records = list(csv.reader(file))[1:]
    state, fired, step = rule.begin(), [], 300_000_000
    for at, value in records:
        start = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) // 300 * step
        row = Row({}, start, start + step, {"posts": int(value)})
        alerts = rule.window(state, [row], start, start + step, step)
        fired += [alert.at_us / 1e6 for alert in alerts if alert.state == "fired"]
    windows = [
        [datetime.fromisoformat(edge).replace(tzinfo=UTC).timestamp() for edge in one] for one in labels
    ]
    result = [one for one in windows if any(one[0] <= at <= one[1] for at in fired)]
    false = [at for at in fired if not any(begin <= at <= end for begin, end in windows)]
    assert len(result) == 4 and len(false) <= 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": "2"}, "--set share must be the share of all posts"),
        ({"burst": "big"}, "--set burst must be a number"),
        ({"sentiment": "happy"}, "--set sentiment must be auto, on or off, got happy"),
    ],
)
def test_wrong_settings_are_said(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Job.of(app_of("trending"), "posts", given)
    assert said in str(refused.value)

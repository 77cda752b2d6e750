"""The generated stream: repeatable, Zipf, out of order, repeated and broken in the shares requested."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.apps.dev.replay.draw import Alias
from streamgauge.apps.dev.replay.generated import Generated, one_slice
from streamgauge.apps.dev.replay.load import Load

LOAD = Load(rate=50_000, seed=11)
CALM = replace(LOAD, burst_every=1e9, flood_every=1e9)


def values(source: Generated) -> list[bytes]:
    return [value for batch in source.batches() for value in batch.values.to_pylist()]


def parsed(lines: list[bytes]) -> list[dict]:
    posts = []
    for line in lines:
        try:
            posts.append(json.loads(line))
        except ValueError:
            continue
    return posts


@pytest.fixture(scope="module")
def calm() -> list[dict]:
    return parsed(values(Generated(CALM, posts=60_000)))


def test_the_same_load_gives_the_same_bytes_and_another_seed_others() -> None:
    first = values(Generated(LOAD, posts=20_000))
    assert values(Generated(LOAD, posts=20_000)) == first
    assert values(Generated(replace(LOAD, seed=12), posts=20_000)) != first


def test_a_slice_does_not_depend_on_those_before_it() -> None:
    third = list(Generated(LOAD, seconds=3).batches())[2]
    alone = one_slice(LOAD, 2)
    assert alone.values.equals(third.values)
    assert (alone.due == third.due).all() and (alone.keys == third.keys).all()


def test_exactly_as_many_posts_as_asked_for() -> None:
    assert sum(len(batch) for batch in Generated(LOAD, posts=123_457).batches()) == 123_457


def test_seconds_end_the_stream_in_the_middle_of_a_slice_too() -> None:
    batches = list(Generated(LOAD, seconds=1.5).batches())
    last = batches[-1].due[-1]
    assert 1.45 < last < 1.5


def test_due_times_never_fall_and_follow_the_rate() -> None:
    batches = list(Generated(CALM, seconds=4).batches())
    due = np.concatenate([batch.due for batch in batches])
    assert (np.diff(due) >= 0).all()
    expected = sum(CALM.rate_at(second + 0.5) for second in range(4)) * (1 + CALM.duplicates)
    assert abs(len(due) - expected) < 5 * np.sqrt(expected)


def test_tags_are_zipf(calm: list[dict]) -> None:
    counts = [count for _, count in Counter(tag for post in calm for tag in post["tags"]).most_common(50)]
    slope = np.polyfit(np.log(np.arange(1, 51)), np.log(counts), 1)[0]
    assert -slope == pytest.approx(CALM.zipf, abs=0.15)


def test_every_tag_stands_once_in_its_post_and_in_its_text(calm: list[dict]) -> None:
    for post in calm[:20_000]:
        assert len(set(post["tags"])) == len(post["tags"])
        assert [word[1:] for word in post["text"].split() if word.startswith("#")] == post["tags"]


def test_few_authors_write_much(calm: list[dict]) -> None:
    counts = np.array(sorted(Counter(post["author"] for post in calm).values(), reverse=True))
    assert counts[: len(counts) // 100].sum() > 0.08 * counts.sum()
    assert (counts == 1).sum() > 0.3 * len(counts)


def test_malformed_and_repeated_messages_have_their_shares() -> None:
    lines = values(Generated(LOAD, posts=100_000))
    posts = parsed(lines)
    malformed = len(lines) - len(posts)
    assert 60 <= malformed <= 145  # 100 ± 4.5 standard deviations
    repeated = len(posts) - len({post["id"] for post in posts})
    assert 0.004 < repeated / len(posts) < 0.006


def test_malformed_messages_are_cut_lines_plain_text_and_bytes_that_are_no_text() -> None:
    lines = values(Generated(replace(LOAD, malformed=0.05), posts=5_000))
    broken = set(lines) - {line for line in lines if line.endswith(b"}")}
    assert any(line.startswith(b'{"id"') for line in broken)
    assert any(line.startswith(b"\xff\xfe") for line in broken)
    assert b"503 Service Unavailable" in broken


def test_clocks_are_out_of_order_and_some_posts_are_late() -> None:
    batch = one_slice(LOAD, 0)
    sent = batch.sent.tolist()
    behind, stamps = [], []
    for line, moment in zip(batch.values.to_pylist(), sent):
        try:
            stamp = datetime.fromisoformat(json.loads(line)["created_at"]).timestamp() * 1000
        except ValueError:
            continue
        behind.append(moment - stamp)
        stamps.append(stamp)
    assert any(later < earlier for earlier, later in pairwise(stamps))
    late = np.mean(np.array(behind) > 60_000)
    assert 0.001 < late < 0.003
    assert -2_000 < min(behind) < -100  # clocks that are fast, but by no more than 1.5 s
    assert np.median(behind) < 1_000


def test_the_daily_rhythm_is_compressed_and_keeps_the_average_rate() -> None:
    fast = replace(CALM, day=30.0)
    rates = np.array([fast.rate_at(t) for t in np.arange(0, 30, 0.1)])
    assert rates.max() > 1.3 * fast.rate and rates.min() < 0.3 * fast.rate
    assert rates.mean() == pytest.approx(fast.rate, rel=0.01)
    assert CALM.rate_at(3.0) == pytest.approx(CALM.rate_at(0.0), rel=0.01)  # a real day is slow


@pytest.mark.slow
def test_a_flood_comes_from_few_authors_and_a_burst_from_many() -> None:
    load = replace(LOAD, malformed=0, duplicates=0)
    seen = set()
    for second in range(40):
        for burst in load.bursts(second + 0.5):
            if burst.weight(second + 0.5) < 0.1 or burst.flood in seen:
                continue
            posts = parsed(one_slice(load, second).values.to_pylist())
            about = Counter(post["tags"][0] for post in posts if post["tags"])
            retweets = [post for post in posts if post["text"].startswith("RT: ")]
            if burst.flood:
                assert len(retweets) > 1_000
                assert len({post["author"] for post in retweets}) < 60
            else:
                assert about.most_common(40)
                assert max(about.values()) > 500
            seen.add(burst.flood)
    assert seen == {True, False}


def test_a_load_says_which_share_is_wrong() -> None:
    with pytest.raises(ValueError, match="share malformed"):
        Load(malformed=0.7)
    with pytest.raises(ValueError, match="the rate must be above 0 posts a second, got 0"):
        Load(rate=0)


def test_lines_hold_their_bytes_as_arrow() -> None:
    batch = one_slice(LOAD, 0)
    assert batch.values.type == pa.large_binary()
    part = batch.slice(10, 12)
    assert part.values.to_pylist() == batch.values.to_pylist()[10:12]
    assert len(part.sent) == len(part.due) == len(part.keys) == 2


def test_alias_draws_in_proportion_to_the_weights() -> None:
    weights = np.array([1.0, 5.0, 0.0, 14.0])
    drawn = np.bincount(Alias.of(weights).draw(np.random.default_rng(1), 200_000), minlength=4)
    assert drawn[2] == 0
    assert drawn / drawn.sum() == pytest.approx(weights / weights.sum(), abs=0.005)


def test_created_at_is_utc_as_polars_reads_it() -> None:
    load = replace(LOAD, start=datetime(2026, 6, 1, 12, tzinfo=UTC), malformed=0, late=0)
    lines = pl.Series(one_slice(load, 0).values.cast(pa.large_string()))
    stamps = lines.str.extract(r'"created_at":"([^"]+)"').str.to_datetime("%+", time_zone="UTC")
    assert stamps.null_count() == 0
    assert str(stamps.dt.truncate("1h").mode()[0]).startswith("2026-06-01 1")

"""Orders with ids that come again, and which of them count, found one by one in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account

START_US = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
SECOND = 1_000_000
WITHIN, DELAY, SIZE, AHEAD = 30 * SECOND, 8 * SECOND, 10 * SECOND, 3600 * SECOND
SCHEMA = {"id": pl.Int64, "n": pl.Int64, "at": pl.Int64}


STEP = -(-WITHIN // 128)
"""What a filter can't tell apart."""
FILTER: dict[str, Any] = {"fpp": 1e-9, "capacity": 10_000}
"""One that makes no mistakes here."""


def orders(source: Stream | None = None, last: int | None = None, **filter: Any) -> Stream:
    """A case: steps before and after the ids are compared, and rows that become several."""
    rows = source or Stream.from_schema(SCHEMA, time=pl.from_epoch("at", time_unit="us"))
    kept = rows.filter(pl.col("n") % 10 != 3)
    reach: dict[str, Any] = {"within": "30s", **filter} if last is None else {"last": last}
    kept = kept.deduplicate("id", **reach)
    listed = kept.filter(pl.col("n") % 10 != 4).with_columns(both=pl.concat_list("n", "n")).explode("both")
    return listed.tumbling("10s", delay="8s").agg(rows=count(), total=sum("both"))


def random_orders(seed: int, n: int) -> list[dict[str, Any]]:
    """Rows of one partition: ids again and again, equal times, late rows, null ids, broken and wild times."""
    random = np.random.default_rng(seed)
    result, due, at = list[dict[str, Any]](), list[tuple[int, int]](), START_US
    time: int | None
    for number in range(n):
        at += int(random.exponential(0.4) * SECOND)
        if due and at > due[0][0]:  # an id again at the very edge of what is a duplicate
            time, again = due.pop(0)
            result.append({"id": again, "n": 10 * number, "at": time})
            continue
        late = random.random()
        time = at - int(random.exponential(3) * SECOND)
        if late < 0.03:
            time = at - int(random.integers(15, 90)) * SECOND
        elif late < 0.05:
            time = at + int(random.integers(2, 9)) * SECOND
        elif late < 0.06:
            time = at + 30 * 86_400 * SECOND  # a clock that is a month ahead
        elif late < 0.07:
            time = None
        elif late < 0.2 and result:
            before = result[-int(random.integers(1, min(len(result), 30) + 1))]
            # A retry: the same row, or one at the very edge of what is a duplicate.
            shift = int(random.choice([0] * 12 + [1 - WITHIN, -WITHIN, 4 * SECOND]))
            time = None if before["at"] is None else before["at"] + shift
            result.append({"id": before["id"], "n": number, "at": time})
            continue
        if late > 0.95:
            result.append({"id": 1_000 + number, "n": 10 * number, "at": at})
            due.append((at + WITHIN - int(random.integers(2)), 1_000 + number))
            continue
        key = None if random.random() < 0.05 else int(random.integers(0, 150))
        result.append({"id": key, "n": number, "at": time})
    return result


@dataclass
class Expected:
    """What becomes of one partition's rows, each compared with all before it."""

    account: Account = field(default_factory=Account)
    windows: dict[int, list[int]] = field(default_factory=dict)


def matches_in_steps(time: int, other: int) -> bool:
    """Whether a filter finds a row at the other time: from its reach's first step to the end of a stretch."""
    low, high = (time - WITHIN + 1) // STEP, (time + WITHIN - 1) // STEP
    return low <= other // STEP <= high // 255 * 255 + 254


def expected(
    rows: list[dict[str, Any]], now_us: int, last: int | None = None, in_steps: bool = False
) -> Expected:
    """The plain answer. Rows' timestamps are `now_us`; all of them are believed within an hour of that."""
    reach = WITHIN if last is None else last + 1  # the last so many messages before it
    account, windows = Account(read=len(rows)), dict[int, list[int]]()
    seen, before = None, dict[int, list[int]]()
    counted = filtered = late = dead = 0
    for number, row in enumerate(rows):
        if row["n"] % 10 == 3:
            filtered += 1
            continue
        time = row["at"]
        if time is None or time > now_us + AHEAD:
            dead += 1
            continue
        times = before.setdefault(row["id"], [])
        at = time if last is None else number
        near = (matches_in_steps(at, one) if in_steps else abs(at - one) < reach for one in times)
        again = row["id"] is not None and any(near)
        times.append(at)
        end = time - time % SIZE + SIZE
        is_late = seen is not None and end <= seen - DELAY
        seen = time if seen is None else max(seen, time)
        if is_late:
            late += 1
        elif again or row["n"] % 10 == 4:
            filtered += 1
        else:
            counted += 1
            result = windows.setdefault(time - time % SIZE, [0, 0])
            result[0] += 2
            result[1] += 2 * row["n"]
    return Expected(Account(account.read, counted, filtered, late, dead), windows)


def cuts(random: np.random.Generator, n: int, pieces: int) -> Iterator[tuple[int, int]]:
    """Consecutive pieces of `n` rows, cut anywhere."""
    edges = [0, *sorted(random.integers(0, n + 1, pieces).tolist()), n]
    yield from pairwise(edges)

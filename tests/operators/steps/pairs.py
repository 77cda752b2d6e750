"""Two streams whose rows have partners in the other, and their join, found pair by pair in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.joining import MOST_ROWS, Between
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account

from .orders import START_US

SECOND = 1_000_000
WITHIN, DELAY, SIZE, EVERY, AHEAD = 30 * SECOND, 8 * SECOND, 20 * SECOND, 10 * SECOND, 3600 * SECOND
SCHEMAS: tuple[dict[str, Any], dict[str, Any]] = (
    {"id": pl.Int64, "twin": pl.Int64, "n": pl.Int64, "at": pl.Int64},
    {"id": pl.Int64, "m": pl.Int64, "at": pl.Int64},
)
TOPICS = "left", "right"
NEVER = -(2**62)

Row = dict[str, Any]


def joined(
    how: Between,
    hopping: bool = False,
    topics: tuple[str, str] = TOPICS,
    limit: int = MOST_ROWS,
    **where: Any,
) -> Stream:
    """A case: steps before rows meet, messages that become several rows, and steps after."""
    time = pl.from_epoch("at", time_unit="us")
    left, right = (
        Stream.from_kafka(topic, value=json(schema), time=time, **where)
        for topic, schema in zip(topics, SCHEMAS)
    )
    left = left.filter(pl.col("n") % 10 != 3).with_columns(id=pl.concat_list("id", "twin")).explode("id")
    rows = left.join(right, on="id", within="30s", how=how, limit=limit)
    rows = rows.filter((pl.col("n").fill_null(0) + pl.col("m").fill_null(0)) % 7 != 0)
    windows = rows.hopping("20s", every="10s", delay="8s") if hopping else rows.tumbling("20s", delay="8s")
    return windows.agg(rows=count(), n=sum("n"), m=sum("m"))


def random_rows(seed: int, n: int) -> tuple[list[Row], list[Row]]:
    """Rows of both sides in their partitions' order: late ones, null keys, equal times, edges of `within`."""
    random = np.random.default_rng(seed)
    sides: tuple[list[Row], list[Row]] = [], []
    at = START_US
    for number in range(n):
        at += int(random.exponential(0.5) * SECOND)
        side, kind = int(random.integers(2)), random.random()
        time: int | None = at - int(random.exponential(3) * SECOND)
        key = None if random.random() < 0.05 else int(random.integers(0, 40))
        if kind < 0.05:
            time = at - int(random.integers(15, 90)) * SECOND
        elif kind > 0.9:
            time = at - int(random.integers(20, 40)) * SECOND
        elif kind < 0.06:
            time = at + 30 * 86_400 * SECOND  # a clock that is a month ahead
        elif kind < 0.07:
            time = None
        elif kind < 0.3 and sides[1 - side]:
            other = sides[1 - side][-int(random.integers(1, min(len(sides[1 - side]), 40) + 1))]
            shift = int(random.choice([0, WITHIN, WITHIN + 1, -WITHIN, -WITHIN - 1]))
            key, time = other["id"], None if other["at"] is None else other["at"] + shift
            at = max(at, min(time or 0, at + 10 * SECOND))
        row = {"id": key, "n": number, "at": time}
        if side == 0:
            sides[0].append({**row, "twin": int(random.integers(0, 40)) if random.random() < 0.2 else None})
        else:
            sides[1].append({"id": key, "m": number, "at": time})
    return sides


@dataclass
class Answer:
    """What a join is."""

    account: Account = field(default_factory=Account)
    windows: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)


@dataclass
class _Judged:
    """A row that is on time: its message, its key, and the watermark before it."""

    side: int
    message: int
    key: int | None
    value: int
    time: int
    reached: int
    partners: int = 0


def answer(
    sides: tuple[list[Row], list[Row]], how: Between, hopping: bool, now_us: int, ended: bool = False
) -> Answer:
    """The plain answer. Messages' timestamps are `now_us`; times within an hour of that are believed.

    Once it has `ended`, no row waits for a partner any more.
    """
    every = EVERY if hopping else SIZE
    account, judged, watermarks = Account(), ([], []), []
    for side, rows in enumerate(sides):
        reported, seen = _judge(side, rows, every, now_us)
        result, lost = reported
        judged[side].extend(result)
        account += lost
        watermarks.append(-NEVER if ended else NEVER if seen is None else seen - DELAY)
    counted, windows = set[tuple[int, int]](), dict[tuple[int, int], list[int]]()
    for rows, time, reached in _results(judged, watermarks, how, every):
        n = next((row.value for row in rows if row.side == 0), None)
        m = next((row.value for row in rows if row.side == 1), None)
        if ((n or 0) + (m or 0)) % 7 == 0:
            continue
        counted |= {(row.side, row.message) for row in rows}
        end = time - time % every + every
        while end - SIZE <= time:
            if end > reached:
                cell = windows.setdefault((end - SIZE, end), [0, 0, 0])
                for at, value in enumerate((1, n or 0, m or 0)):
                    cell[at] += value
            end += every
    messages = {(row.side, row.message) for side in judged for row in side}
    more = Account(len(messages), len(counted), len(messages) - len(counted))
    return Answer(account + more, {at: (cell[0], cell[1], cell[2]) for at, cell in windows.items()})


def _judge(side: int, rows: list[Row], every: int, now_us: int) -> tuple[Any, int | None]:
    result, seen = list[_Judged](), None
    filtered = late = dead = 0
    for message, row in enumerate(rows):
        time = row["at"]
        if side == 0 and row["n"] % 10 == 3:
            filtered += 1
        elif time is None or time > now_us + AHEAD:
            dead += 1
        else:
            reached = NEVER if seen is None else seen - DELAY
            seen = time if seen is None else max(seen, time)
            if time - time % every + SIZE <= reached:
                late += 1
                continue
            keys = [row["id"], row["twin"]] if side == 0 else [row["id"]]
            value = row["n"] if side == 0 else row["m"]
            result += [_Judged(side, message, key, value, time, reached) for key in keys]
    return (result, Account(filtered + late + dead, 0, filtered, late, dead)), seen


def _results(
    judged: Any, watermarks: list[int], how: Between, every: int
) -> Iterator[tuple[list[_Judged], int, int]]:
    for one in judged[0]:
        for two in judged[1]:
            if one.key is not None and one.key == two.key and abs(one.time - two.time) <= WITHIN:
                one.partners += 1
                two.partners += 1
                yield [one, two], max(one.time, two.time), max(one.reached, two.reached)
    for side in {"inner": (), "left": (0,), "outer": (0, 1)}[how]:
        for row in judged[side]:
            latest = row.time + WITHIN
            over = latest - latest % every + SIZE <= watermarks[1 - side]
            if not row.partners and (row.key is None or over):
                yield [row], row.time, row.reached

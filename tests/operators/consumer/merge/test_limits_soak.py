"""A million groups an hour in 2 GiB: worker's part and merger in a process of their own, by its memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

GROUPS = int(os.environ.get("GROUPS", 1_000_000))
LIMIT_KB = 2 * 1024 * 1024

RUN = """
import resource, sys
import numpy as np
import polars as pl
from streamgauge import Stream, count, distinct, quantiles
from streamgauge.operators.consumer.merge.limits import keep_within
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.watermarks.position import Input
from streamgauge.operators.sketching.partition_state import PartitionState

groups, kind = int(sys.argv[1]), sys.argv[2]
rows = Stream.from_schema({"at": pl.Int64, "key": pl.Int64, "user": pl.Int64}, time=pl.from_epoch("at"))
keyed = rows.group_by("key")
windowed = {"tumbling": keyed.tumbling("1h"), "session": keyed.session("10m")}[kind]
stream = windowed.agg(rows=count(), users=distinct("user"), spread=quantiles("user"))
where, options = Input("rows", 0), RunOptions(state_bytes=600 * 1024 * 1024)
progress, merger = PartitionState(stream, *where, 0, clock=lambda: 1e9), Merger(stream, [where])
random, each, emitted, counted = np.random.default_rng(1), 50_000, 0, 0
deltas = 3 * groups // each
for delta in range(deltas):
    times = np.full(each, delta * 3_600 // deltas)
    keys = random.permutation(groups)[:each] if kind == "tumbling" else delta * each // 3 + np.arange(each)
    frame = pl.DataFrame({"at": times, "key": keys, "user": random.integers(0, 1_000_000, each)})
    offsets = np.arange(delta * each, (delta + 1) * each)
    progress.add(frame, None, offsets, int(offsets[-1]) + 1, lambda numbers, reason: None)
    merger.offer(progress.delta(), delta)
    keep_within(options, [merger])
    for table in merger.close():
        emitted, counted = emitted + table.num_rows, counted + sum(table.column("rows").to_pylist())
for table in merger.close_all():
    emitted, counted = emitted + table.num_rows, counted + sum(table.column("rows").to_pylist())
assert counted == deltas * each, counted
print(emitted, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["tumbling", "session"])
def test_a_million_groups_an_hour_take_less_than_two_gibibytes(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(GROUPS), kind], capture_output=True, text=True, check=True
    )
    groups, peak = map(int, done.stdout.split())
    assert groups > 0.9 * GROUPS
    assert peak < LIMIT_KB, f"{groups:,} groups of {kind} windows used {peak / 1024:,.0f} MiB"

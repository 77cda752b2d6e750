"""A run's plan as its worker processes get it."""

from __future__ import annotations

import pickle

import polars as pl

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.watermarks.position import Input


def test_workers_get_all_but_the_callback_which_may_not_pickle() -> None:
    stream = Stream.from_kafka("posts", value=json({"n": pl.Int64})).tumbling("1m").agg(posts=count())
    options = RunOptions(on_window=lambda table: None, group_id="mine")
    plan = Plan(stream, "mine", "mine.table", {"posts": 2, "likes": 1}, options=options)
    result = pickle.loads(pickle.dumps(plan.of_worker(0, "mine-1")))
    assert result.options == RunOptions(group_id="mine")
    assert result.inputs == [("posts", 0), ("posts", 1), ("likes", 0)]
    assert isinstance(result.inputs[0], Input) and result.merger_group == "mine.merger"

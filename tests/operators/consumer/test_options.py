"""Options that no run can have: told at once and by name, before a broker is asked."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        # The client's library takes an empty group for a fault of its own, and the interpreter with it.
        ("group_id", "", "a name of at most 200 letters"),
        ("group_id", 7, "a name of at most"),
        ("group_id", "a team/b", "a name of at most"),
        ("group_id", "g" * 201, "a name of at most"),
        ("workers", 0, "a whole number from 1 on"),
        ("workers", 1.5, "a whole number from 1 on"),
        ("workers", "2", "a whole number from 1 on"),
        ("table_partitions", 0, "a whole number from 1 on"),
        ("keep_windows", -1, "a whole number from 0 on"),
        ("checkpoint_seconds", 0, "seconds above 0"),
        ("checkpoint_seconds", "1", "seconds above 0"),
        ("idle_seconds", -1.0, "seconds above 0"),
        ("idle_seconds", float("nan"), "seconds above 0"),
        ("delivery", "once", "it can be 'at_most_once' or 'at_least_once' or "),
        ("until", "end", "it can be None or 'latest'"),
        ("start", "first", "it can be 'earliest' or 'latest'"),
        ("on_window", 5, "a function of one table"),
    ],
)
def test_an_option_that_no_run_can_have_is_named(name: str, given: Any, told: str) -> None:
    source = Stream.from_kafka("posts", value=json({"x": pl.Int64}), bootstrap_servers="localhost:1")
    stream = source.tumbling("1m").agg(posts=count())
    with pytest.raises((TypeError, ValueError), match=told) as refused:
        start(stream, RunOptions(**{name: given}))
    assert str(refused.value).startswith(f"{name} is {given!r}")

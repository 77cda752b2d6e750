"""Options that no run can have: reported at once and by name, before a broker is contacted."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Any

import polars as pl
import pytest

import streamgauge
from streamgauge.operators.consumer.options import RunKeywords, RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.shared_run import options_of
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sinks.sketches_to_parquet import SketchesToParquet

from ...cases import each


@each(
    ("name", "given", "reported"),
    [
        # The client's library takes an empty group for a fault of its own, and the interpreter with it.
        ("group_id", "", "a name of at most 200 letters"),
        ("group_id", 7, "a name of at most"),
        ("group_id", "a team/b", "a name of at most"),
        ("group_id", "g" * 201, "a name of at most"),
        ("workers", 0, "an integer ≥ 1"),
        ("workers", 1.5, "an integer ≥ 1"),
        ("workers", "2", "an integer ≥ 1"),
        ("table_partitions", 0, "an integer ≥ 1"),
        ("keep_windows", -1, "an integer ≥ 0"),
        ("checkpoint_seconds", 0, "seconds above 0"),
        ("checkpoint_seconds", "1", "seconds above 0"),
        ("idle_seconds", -1.0, "seconds above 0"),
        ("connect_seconds", 0, "seconds above 0"),
        ("idle_seconds", float("nan"), "seconds above 0"),
        ("delivery", "once", "delivery must be 'at_most_once' or 'at_least_once' or "),
        ("until", "end", "until must be None or 'latest', got 'end'"),
        ("start", "first", "start must be 'earliest' or 'latest', got 'first'"),
        ("on_window", 5, "a function of one table"),
        ("keep", "30d", "windows are stored in table=, which is missing"),
    ],
)
def test_an_option_that_no_run_can_have_is_named(name: str, given: Any, reported: str) -> None:
    source = Stream.from_kafka("posts", value=json({"x": pl.Int64}), bootstrap_servers="localhost:1")
    stream = source.tumbling("1m").agg(posts=count())
    with pytest.raises((TypeError, ValueError), match=reported) as refused:
        start(stream, RunOptions(**{name: given}))
    assert str(refused.value).startswith(f"{name} ") and repr(given) in str(refused.value)


def test_the_keywords_of_a_run_are_its_options_once() -> None:
    options = {one.name: one.type for one in fields(RunOptions)}
    assert {name: one.__forward_arg__ for name, one in RunKeywords.__annotations__.items()} == options
    for function, own in (
        (streamgauge.Stream.run, {"self", "progress"}),
        (streamgauge.Stream.start, {"self"}),
        (streamgauge.run_together, {"streams", "progress"}),
        (streamgauge.start_together, {"streams"}),
    ):
        shown = inspect.signature(function).parameters
        assert shown.keys() == own | options.keys()
        assert all(
            shown[one.name].default == one.default
            for one in fields(RunOptions)
            if one.name not in ("on_window", "sinks")
        )


def test_an_option_that_there_is_not_is_named_with_the_nearest() -> None:
    value = json({"n": pl.Int64})
    stream: Any = streamgauge.Stream.from_kafka("posts", value=value).tumbling("1m").agg(n=count())
    together: Any = streamgauge.run_together
    for call, message in (
        (
            lambda: stream.run(delivry="exactly_once"),
            "run: unknown argument delivry=; did you mean delivery=",
        ),
        (
            lambda: stream.start(progress=False),
            "start: unknown argument progress=; its options are delivery, until",
        ),
        (lambda: together({}, wrkers=2), "run_together: unknown argument wrkers=; did you mean workers="),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_a_table_is_a_sink_in_a_folder_of_each_stream(tmp_path: Any) -> None:
    source = Stream.from_kafka("posts", value=json({"x": pl.Int64}), bootstrap_servers="localhost:1")
    stream = source.tumbling("1m").agg(posts=count())
    options = RunOptions(table=tmp_path, keep="30d")
    sink = SketchesToParquet(tmp_path, "30d", compacted=True)
    assert options.all_sinks == [sink] == replace(options, workers=2).all_sinks
    shared = options_of({"a": stream, "b": stream}, options, None, {"b": [AnswersToKafka("answers")]})
    assert shared["a"].all_sinks == [SketchesToParquet(str(tmp_path / "a"), "30d", compacted=True)]
    assert shared["b"].all_sinks == [
        AnswersToKafka("answers"),
        SketchesToParquet(str(tmp_path / "b"), "30d", compacted=True),
    ]
    for table, keep in (("nowhere://bucket/table", None), (tmp_path, "0s")):
        with pytest.raises(ValueError, match="SketchesToParquet: "):
            RunOptions(table=table, keep=keep)

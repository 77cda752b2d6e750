"""Who types another library's word learns ours; every word that is proposed is one of ours."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, count, json
from streamgauge.operators.definition.foreign_words import KEYWORDS, METHODS, OF_RUNS

from ...cases import each

ROWS = Stream.from_kafka("posts", value=json({"user": pl.String}))


@each("name", METHODS)
def test_a_method_that_a_stream_lacks_names_ours(name: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(ROWS, name)
    reported = str(raised.value)
    assert reported.startswith(f"a Stream has no .{name}: write ")
    proposed = re.findall(r"(?:^|[ ,])\.?([a-z_]+)\(", reported.split(": write ", 1)[1])
    assert proposed and all(hasattr(Stream, word) for word in proposed), proposed


def test_every_keyword_that_is_proposed_is_one_that_a_method_has() -> None:
    methods = [getattr(Stream, name) for name in dir(Stream) if not name.startswith("_")]
    known = {name for one in methods if callable(one) for name in inspect.signature(one).parameters}
    assert set(KEYWORDS.values()) <= known


@pytest.mark.parametrize(
    ("call", "reported"),
    [
        (lambda: ROWS.tumbling("1h", grace="10s"), "tumbling: unknown argument grace=; write delay="),
        (lambda: ROWS.hopping("1h", step="10s"), "hopping: unknown argument step=; write every="),
        (lambda: ROWS.session(inactivity_gap="10s"), "session: unknown argument inactivity_gap=; write gap="),
        (
            lambda: Stream.from_kafka("posts", schema=json({})),
            "from_kafka: unknown argument schema=; write value=",
        ),
        (
            lambda: ROWS.run(auto_offset_reset="latest"),
            "run: unknown argument auto_offset_reset=; write start=",
        ),
        (lambda: ROWS.start(parallelism=2), "start: unknown argument parallelism=; write workers="),
        (
            lambda: Stream.from_kafka(topics=["posts"], value=json({})),
            "from_kafka: unknown argument topics=; write topic=",
        ),
        (
            lambda: Stream.from_kafka("posts", value=json({}), group_id="g"),
            "from_kafka: unknown argument group_id=; pass it to run(...) or start(...)",
        ),
    ],
)
def test_an_argument_of_others_names_ours(call: Any, reported: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == reported


def test_a_function_in_place_of_an_expression_names_map_batches() -> None:
    with pytest.raises(TypeError, match=r"^double: <function .*> is not an expression; .*map_batches"):
        ROWS.with_columns(double=lambda row: row["user"] * 2)


def test_the_arguments_of_runs_are_those_that_a_run_has() -> None:
    assert set(OF_RUNS) <= set(inspect.signature(Stream.run).parameters)


def test_what_nobody_calls_so_is_an_error_as_before_and_streams_are_values_as_before() -> None:
    with pytest.raises(AttributeError, match=r"^a Stream has no \.nonsense$"):
        getattr(ROWS, "nonsense")  # noqa: B009
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        ROWS.tumbling("1h", nonsense=1)
    aggregates = ROWS.group_by("user").tumbling("1m", delay="3s").agg(grace=count())
    assert not hasattr(aggregates, "apply") and isinstance(aggregates, Stream)
    for same in (copy.deepcopy(aggregates), copy.copy(aggregates), pickle.loads(pickle.dumps(aggregates))):
        assert same.fingerprint() == aggregates.fingerprint()

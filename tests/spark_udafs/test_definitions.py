"""A checkpoint of another definition is refused before the first micro-batch, with the difference."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark_udafs.definitions import DefinitionChanged, check_same, label_of, pack
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.streaming.run import write


def definition_of(**aggregates: Aggregate) -> str:
    """A packed definition with these aggregates."""
    return pack({"aggregates": {name: requested.definition() for name, requested in aggregates.items()}})


def test_nothing_is_said_of_the_same_and_of_what_is_not_known() -> None:
    one = definition_of(n=ask.count(), users=ask.distinct("user"))
    check_same(one, one)
    check_same(None, one)
    check_same(one, None)


def test_the_order_of_columns_counts_since_state_is_found_by_it() -> None:
    first, other = (
        definition_of(n=ask.count(), m=ask.count("x")),
        definition_of(m=ask.count("x"), n=ask.count()),
    )
    with pytest.raises(DefinitionChanged, match="the aggregates' order changed from n, m to m, n"):
        check_same(first, other)


def test_another_question_and_other_words_of_another_polars_go_on(caplog: pytest.LogCaptureFixture) -> None:
    check_same(definition_of(tags=ask.top_k("lang", k=10)), definition_of(tags=ask.top_k("lang", k=5)))
    words = {"2.0.0": 'col("n").is_between(1, 5)', "2.1.0": '(col("n") >= 1) & (col("n") <= 5)'}
    one, other = (
        pack({"version": 1, "written_by": {"polars": version}, "steps": [["filter", text]]})
        for version, text in words.items()
    )
    check_same(one, other)
    assert f"step 1 had {words['2.0.0']}, and has {words['2.1.0']}" in "".join(caplog.messages)


def test_a_checkpoint_of_an_unknown_form_is_refused_by_name() -> None:
    before = pack({"source": {"value": "json"}, "steps": [], "aggregates": {}})
    with pytest.raises(
        DefinitionChanged, match="written in format version None, by another version of streamgauge"
    ):
        check_same(before, pack({"version": 1, "steps": [], "aggregates": {}}))


def test_expressions_of_one_name_are_compared_by_their_trees(spark: Any) -> None:
    rows = (
        spark.readStream.format("rate").load().selectExpr("timestamp at", "'a' a", "value b", "array(1) ar")
    )

    def label(key: Any, **requested: Any) -> str:
        result = (
            sketch(rows)
            .withWatermark("at", "1 second")
            .groupBy(key, window("at", "1 minute"))
            .agg(**requested)
        )
        packed = label_of(result)
        assert packed is not None
        return packed

    def plain(x: Any) -> Any:
        return F.transform("ar", lambda y: y + x)

    one = label(F.lower("a").alias("k"), n=F.max(plain(1)[0]), m=F.count("ar"))
    check_same(one, label(F.lower("a").alias("k"), n=F.max(plain(1)[0]), m=F.count("ar")))
    for changed, what in (
        (label(F.upper("a").alias("k"), n=F.max(plain(1)[0]), m=F.count("ar")), "'k' is made of another"),
        (label(F.lower("a").alias("k"), n=F.max(plain(F.lit(1).cast("int"))[0]), m=F.count("ar")), "CAST"),
        (label(F.lower("a").alias("k"), n=F.max(plain(1)[0]), m=F.count(F.isnotnull("ar"))), "IS NOT NULL"),
    ):
        with pytest.raises(DefinitionChanged, match=what):
            check_same(one, changed)


USERS = ask.distinct("user")


def request_of(
    rows: Any,
    more: dict[str, Aggregate],
    size: str = "1 minute",
    keys: tuple[str, ...] = (),
    name: str = "users",
    users: Aggregate = USERS,
    k: int = 10,
    added: Aggregate | None = None,
) -> Any:
    """A table of sketches of a streaming DataFrame."""
    fresh = {} if added is None else {"n": added}
    grouped = sketch(rows).withWatermark("at", "5 seconds").groupBy(*keys, window("at", size))
    return grouped.agg(**{name: users}, langs=ask.top_k("lang", k=k), **more, **fresh)


CHANGES: list[tuple[dict[str, Any], str]] = [
    (
        {"users": ask.distinct("lang")},
        '"users" changed from distinct("user", lg_k=12) to distinct("lang", lg',
    ),
    ({"users": ask.distinct("user", lg_k=10)}, 'to distinct("user", lg_k=10)'),
    ({"name": "people"}, 'the aggregate "users" was renamed to "people"'),
    ({"size": "2 minutes"}, 'the window changed from 1m over "at" to 2m over "at"'),
    ({"added": ask.count()}, 'the aggregate "n" was added'),
    ({"keys": ("lang",)}, 'the grouping changed from no keys to "lang"'),
]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="Catalyst", marks=pytest.mark.soak),
        pytest.param({"seen": ask.membership("user", capacity=100)}, id="buckets"),
    ],
)
def test_a_plain_stream_is_refused_another_s_checkpoint(
    spark: Any, frame_of: Callable[..., pl.DataFrame], tmp_path: Path, more: dict[str, Aggregate]
) -> None:
    # One function names what differs: each way of merging need only come to it.
    changes = CHANGES[:2] if more else CHANGES
    folder = tmp_path / "rows"
    folder.mkdir()

    def add(number: int) -> None:
        file = folder / f"{number}.parquet"
        frame_of(number, rows=50).select("at", "user", "lang").write_parquet(file)
        os.utime(file, (1_700_000_000 + number,) * 2)

    def run(**changed: Any) -> Any:
        files = spark.readStream.schema("at timestamp_ntz, user string, lang string").parquet(str(folder))
        table = request_of(files.selectExpr("cast(at as timestamp) as at", "user", "lang"), more, **changed)
        # As a user does it who knows of no function of ours that writes.
        writer = table.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination(600)
        except Exception as error:
            return str(error)
        return sum(batch["numInputRows"] for batch in query.recentProgress)

    def unfinished(**changed: Any) -> str:
        """What `write` says whose first batch was planned before, and not finished."""
        last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        for path in (last, last.with_name(f".{last.name}.crc")):
            path.unlink()
        files = spark.readStream.schema("at timestamp_ntz, user string, lang string").parquet(str(folder))
        table = request_of(files.selectExpr("cast(at as timestamp) as at", "user", "lang"), more, **changed)
        query = write(table, tmp_path / "checkpoint", available_now=True)
        with pytest.raises(Exception, match="made by another definition") as raised:
            query.awaitTermination(600)
        return str(raised.value)

    add(0)
    assert run() == 50
    add(1)
    for changed, difference in changes:
        said = str(run(**changed))
        assert "the checkpoint was made by another definition" in said
        assert difference in said
    assert run(k=3) == 50  # the question is its asker's own
    changed, difference = CHANGES[0]
    assert difference in unfinished(**changed)

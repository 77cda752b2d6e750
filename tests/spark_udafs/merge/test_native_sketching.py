"""Catalyst's own sketches of rows say what ours of the same rows say, type by type."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge import Reservoir, query
from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark import as_table, sketch
from streamgauge.spark_udafs.merge.catalyst import NativePartials

pytestmark = pytest.mark.spark

WHOLE = {"tiny": pa.int8(), "small": pa.int16(), "plain": pa.int32(), "large": pa.int64(), "yes": pa.bool_()}
REAL = {"single": pa.float32(), "double": pa.float64()}
TEXT = {"text": pa.string(), "raw": pa.binary()}
OTHER = {
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "clock": pa.timestamp("us"),
    "paid": pa.decimal128(20, 3),
}
TYPES = {**WHOLE, **REAL, **TEXT, **OTHER}


def _rows(seed: int, height: int = 3_000) -> pa.Table:
    """Every type with its extremes; nulls everywhere, and nothing else where the key is "none"."""
    draw = random.Random(seed)
    start = datetime(1960, 5, 6, 7, 8, 9, 123_456)
    special = [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 5e-324, 0.1]

    def value(name: str, kind: pa.DataType) -> Any:
        if draw.random() < 0.1:
            return None
        n = int(draw.paretovariate(0.5)) % 2_000
        if name == "yes":
            return n % 2 == 0
        if name in WHOLE:
            most = (1 << (kind.bit_width - 1)) - 1
            return draw.choice([n % 100, -(n % 100), most, -most - 1]) if n % 9 == 0 else n % 120
        if name in REAL:
            return draw.choice(special) if n % 5 == 0 else n / 8
        text = draw.choice(["", "é", "Z", "a\x00", "\U0001f600", "zz"]) if n % 5 == 0 else f"t{n}"
        moment = start + timedelta(days=n * 20, microseconds=n)
        made = {
            "text": text,
            "raw": text.encode() + b"\xff\x80",
            "day": date(1, 1, 1) + timedelta(days=n * 1_800),
            "at": moment.replace(tzinfo=UTC),
            "clock": moment,
            "paid": Decimal(n - 500) / 8,
        }
        return made[name]

    keys = [draw.choice(["many", "few", None] + ["many"] * 9) for _ in range(height)] + ["none"] * 5
    columns = {
        name: pa.array([value(name, kind) for _ in range(height)] + [None] * 5, kind)
        for name, kind in TYPES.items()
    }
    return pa.table({"lang": keys, **columns})


def _aggregates() -> dict[str, Aggregate]:
    """Each aggregate of each kind of type that Catalyst can make it of."""
    families: list[tuple[Callable[..., Aggregate], str]] = [
        (lambda name: ask.distinct(name, lg_k=11), "tiny small plain large yes text raw"),
        (lambda name: ask.distinct_set(name, lg_k=8), "tiny large yes single double text raw"),
        (lambda name: ask.kll_quantiles(name, k=100), "small large yes single double paid"),
        (lambda name: ask.top_k(name, max_size=64), "tiny large yes text"),
        (ask.count, "yes double raw paid"),
        (ask.sum, "tiny large yes"),
        (ask.mean, "plain large yes"),
        (ask.min, "tiny large yes text raw day at clock paid"),
        (ask.max, "small large yes text raw day at clock paid"),
    ]
    aggregates = {"rows": ask.count()}
    for make, names in families:
        aggregates.update({f"{make(name).name}_{name}": make(name) for name in names.split()})
    return aggregates


@pytest.fixture(scope="module")
def rows(spark: Any) -> Iterator[DataFrame]:
    frame = spark.createDataFrame(_rows(1)).repartition(3).cache()
    yield frame
    frame.unpersist()


def _by_python(monkeypatch: pytest.MonkeyPatch, make: Callable[[], DataFrame]) -> DataFrame:
    """The same table from our own sketches."""
    with monkeypatch.context() as patched:
        patched.setattr(NativePartials, "sketched", lambda *_: None)
        table = make()
    assert "__read" in _plan(table)
    return table


def _plan(table: DataFrame) -> str:
    return str(table._jdf.queryExecution().toString())  # type: ignore[operator]


def test_the_same_as_ours_of_every_type(
    rows: DataFrame, same_tables: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = _aggregates()
    table = sketch(rows).groupBy("lang").agg(**requested)
    assert "__read" not in _plan(table)
    ours = _by_python(monkeypatch, lambda: sketch(rows).groupBy("lang").agg(**requested))
    assert [(f.name, f.dataType, f.metadata) for f in table.schema] == [
        (f.name, f.dataType, f.metadata) for f in ours.schema
    ]
    same_tables(as_table(table), as_table(ours))


def test_keys_of_every_type_and_none(
    rows: DataFrame, same_tables: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {"n": ask.count()}
    aggregates = {**counted, "users": ask.distinct("text")}
    keys = ["yes", "tiny", "day", "at", "clock", "paid", "raw", (rows.tiny + 1).alias("text")]
    for make in (
        lambda: sketch(rows).groupBy(*keys).agg(**counted),
        lambda: sketch(rows).agg(**aggregates),
        lambda: sketch(rows.where("false")).agg(**aggregates),
        lambda: sketch(rows.where("false")).groupBy("lang").agg(**aggregates),
    ):
        table = make()
        assert "__read" not in _plan(table)
        same_tables(as_table(table), as_table(_by_python(monkeypatch, make)))


def test_what_catalyst_would_say_otherwise_stays_with_our_own_sketches(rows: DataFrame) -> None:
    for one in (
        ask.distinct("double"),
        ask.distinct("day"),
        ask.distinct_set("at"),
        ask.kll_quantiles("at"),
        ask.top_k("day"),
        ask.sum("double"),
        ask.sum("paid"),
        ask.mean("single"),
        ask.min("double"),
        ask.variance("plain"),
        ask.count("tags"),
        ask.top_k("tags"),
        ask.sample("tags"),
    ):
        table = sketch(rows.selectExpr("*", "array(text) AS tags")).agg(rows=ask.count(), other=one)
        assert "__read" in _plan(table), one


K = 300


@pytest.fixture(scope="module")
def numbers(spark: Any) -> Iterator[DataFrame]:
    """Of 40,000 rows each seventh is null; in memory, in four parts."""
    made = "IF(id % 7 = 0, NULL, id) AS id", "id % 3 AS side", "IF(id < 100, concat('t', id), NULL) AS tag"
    frame = spark.range(0, 40_000, numPartitions=4).selectExpr(*made).cache()
    assert frame.count() == 40_000
    yield frame
    frame.unpersist()


@pytest.fixture
def seed(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the draws those of a seed."""
    rand = F.rand
    return lambda seed: monkeypatch.setattr(F, "rand", lambda: rand(seed))


def _drawn(table: DataFrame) -> Reservoir:
    return Reservoir.from_bytes(as_table(table)["some"][0].as_py())


def test_a_sample_of_rows_in_memory_is_of_those_of_least_share(
    numbers: DataFrame, seed: Callable[[int], None]
) -> None:
    places = []
    for number in range(5):
        seed(number)
        table = sketch(numbers).agg(some=ask.sample("id", k=K))
        assert "monotonically_increasing_id" in _plan(table) and "__read" not in _plan(table)
        result = _drawn(table)
        shares = numbers.select("id", F.rand().alias("share")).toArrow().to_pylist()
        known = [(row["share"], row["id"]) for row in shares if row["id"] is not None]
        assert result.n == len(known) == 40_000 - 5_715
        assert sorted(result.values().to_pylist()) == sorted(item for _, item in sorted(known)[:K])
        places += result.values().to_pylist()
    # A share is drawn evenly, wherever its row stands: in no fortieth of the rows there are too many.
    observed = np.bincount(np.array(places) // 1_000, minlength=40)
    expected = len(places) / 40
    assert ((observed - expected) ** 2 / expected).sum() < 39 + 4 * np.sqrt(2 * 39)


def test_samples_with_few_rows_or_none_and_merged_ones(
    numbers: DataFrame, seed: Callable[[int], None]
) -> None:
    seed(9)
    few = _drawn(sketch(numbers).agg(some=ask.sample("tag", k=K)))
    assert few.n == 100 and sorted(few.values().to_pylist()) == sorted(f"t{at}" for at in range(100))
    none = numbers.where("id < 0").cache()
    assert _drawn(sketch(none).agg(some=ask.sample("id", k=K))).n == 0
    none.unpersist()
    here = _drawn(sketch(numbers).agg(some=ask.sample("id", k=K)))
    both = here | Reservoir(K, seed=3).update(np.arange(50_000, 50_000 + here.n))
    assert both.n == 2 * here.n and len(both) == K
    assert sum(item < 40_000 for item in both.values().to_pylist()) == pytest.approx(
        K / 2, abs=4 * np.sqrt(K) / 2
    )


@pytest.mark.parametrize("keys", [[], ["side"]])
def test_samples_of_groups_and_of_rows_that_are_read_once(
    numbers: DataFrame, seed: Callable[[int], None], keys: list[str]
) -> None:
    seed(4)
    read = numbers.where("true") if keys else numbers.where("side >= 0")
    aggregates = {"some": ask.sample("id", k=K), "tags": ask.sample("tag", k=20), "rows": ask.count("id")}
    table = sketch(read).groupBy(*keys).agg(**aggregates)
    assert "__read" not in _plan(table) and "monotonically_increasing_id" not in _plan(table)
    shares = numbers.select("id", "side", F.rand().alias("share")).toArrow().to_pylist()
    for row in query(as_table(table)).iter_rows(named=True):
        known = [
            (one["share"], one["id"])
            for one in shares
            if one["id"] is not None and row.get("side") in (None, one["side"])
        ]
        assert row["some"]["n"] == row["rows"] == len(known)
        assert sorted(row["some"]["values"]) == sorted(item for _, item in sorted(known)[:K])
        assert len(row["tags"]["values"]) == 20 <= row["tags"]["n"]

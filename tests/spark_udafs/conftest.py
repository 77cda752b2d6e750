"""What tests of the Spark floor share: one stream with every aggregate, and how its tables are compared."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import (
    END,
    START,
    ArrowStream,
    aggregates_of,
    arrow_table,
    keys_of,
)

MINUTE = 60_000_000
START_US = 1_700_000_040_000_000
"""A full minute."""

COLUMNS = {
    "at": pl.Datetime("us"),
    "user": pl.String,
    "lang": pl.String,
    "price": pl.Float64,
    "item": pl.Int64,
    "tags": pl.List(pl.String),
}
REQUESTED = {
    "rows": ask.count(),
    "users": ask.distinct("user"),
    "user_set": ask.distinct_set("user", lg_k=10),
    "prices": ask.kll_quantiles("price"),
    "items_spread": ask.kll_quantiles("item"),
    "tags": ask.top_k("tags"),
    "items": ask.top_k("item", max_size=64),
    "some": ask.sample("user", k=7),
    "some_tags": ask.sample("tags", k=3),
    "turnover": ask.sum("price"),
    "units": ask.sum("item"),
    "mean_price": ask.mean("price"),
    "least": ask.min("price"),
    "last_user": ask.max("user"),
    "opening": ask.first("user"),
    "closing": ask.last("price"),
    "spread": ask.variance("price"),
}
BUCKETED = {
    "price_quantiles": ask.quantiles("price"),
    "item_quantiles": ask.quantiles("item"),
    "item_counts": ask.frequency("item", eps=0.01),
    "tags_seen": ask.membership("tags", capacity=100),
    "heaviest": ask.weighted_sample("user", weight="price", k=5),
    "lately": ask.decayed_count("user"),
    "late_users": ask.aggregate("sliding_distinct", "user", lg_k=8),
    "recently_seen": ask.aggregate("sliding_membership", "user", capacity=100),
    "fading_users": ask.aggregate("decayed_sample", "user", k=5),
    "fading_prices": ask.aggregate("decayed_quantiles", "price", relative_accuracy=0.02),
    "recent_users": ask.aggregate("recent_sample", "user", k=5),
    "users_by_lang": ask.aggregate("stratified_sample", "user", key="lang", k=5),
    "some_rows": ask.aggregate("bernoulli_sample", "user"),
    "same_users": ask.aggregate("hash_sample", "user", key="user"),
    "users_cpc": ask.aggregate("cpc", "user"),
    "prices_tail": ask.aggregate("tail_quantiles", "price"),
    "prices_classic": ask.aggregate("classic_quantiles", "price"),
    "prices_tdigest": ask.aggregate("tdigest_quantiles", "price"),
    "prices_by_weight": ask.aggregate("var_opt", "price", weight="item", k=5),
    "turnover_by_user": ask.aggregate("tuple", "user", value="price", lg_k=8),
}
"""What Catalyst can't merge; one of these, and all goes through buckets."""


def skip_if_one_batch(spark: Any) -> None:
    """Skip a test that needs several micro-batches of `availableNow`.

    Before 4.2 there is one if a Python source takes part, as one that carries a definition does; the windows
    that it completes come with the next run.
    """
    if spark.version < "4.2":
        pytest.skip(
            "before 4.2, availableNow is one batch with a Python source, and ends before windows close"
        )


@pytest.fixture(scope="session", params=["Catalyst", "buckets"])
def requested_aggregates(request: pytest.FixtureRequest) -> dict[str, ask.Aggregate]:
    """Every aggregate that Catalyst merges; every aggregate there is."""
    return REQUESTED if request.param == "Catalyst" else {**REQUESTED, **BUCKETED}


@pytest.fixture(scope="session")
def everything(requested_aggregates: dict[str, ask.Aggregate]) -> Stream:
    """A stream of frames of them by language and minute."""
    return Stream.from_schema(COLUMNS, time="at").group_by("lang").tumbling("1m").agg(**requested_aggregates)


@pytest.fixture(scope="session")
def frame_of() -> Callable[..., pl.DataFrame]:
    """Rows of some minutes, in order of time: Zipf items and tags, nulls everywhere, a price far from 0."""

    def make(seed: int, rows: int = 4_000, minutes: int = 3) -> pl.DataFrame:
        random = np.random.default_rng(seed)
        at = np.sort(random.integers(START_US, START_US + minutes * MINUTE, rows))
        tags = [
            None if n == 5 else [None if t == 3 else f"tag{t % 40}" for t in random.zipf(1.4, n)]
            for n in random.integers(0, 6, rows)
        ]
        return pl.DataFrame(
            {
                "at": pl.Series(at).cast(pl.Datetime("us")),
                "user": [None if u == 7 else f"user{u}" for u in random.integers(0, 3_000, rows)],
                "lang": [
                    ("de", "en", "", None)[c] for c in random.choice(4, rows, p=[0.6, 0.37, 0.02, 0.01])
                ],
                "price": [None if p > 1e6 + 3 else p for p in random.normal(1e6, 1.0, rows)],
                "item": random.zipf(1.2, rows) % 5_000,
                "tags": tags,
            },
            schema=COLUMNS,
        )

    return make


@pytest.fixture(scope="session")
def same_tables() -> Callable[..., None]:
    """Asserts that two tables of the same rows say the same, however they were merged.

    Equal windows, keys, counts, extremes and HLL registers; sums to rounding; frequent items that agree
    within their bounds; quantiles of the same number of values, of ranks within their error; and samples of
    as many rows, equal ones too unless `draws` is False, since those of other cuts of a stream are others.
    """
    return _same_tables


def _same_tables(one: ArrowStream, other: ArrowStream, draws: bool = True) -> None:
    one, other = arrow_table(one), arrow_table(other)
    assert one.schema.equals(other.schema, check_metadata=True)
    order = [(name, "ascending") for name in (START, END, *keys_of(one.schema))]
    one, other = one.sort_by(order), other.sort_by(order)
    for name, _ in order:
        assert one.column(name).to_pylist() == other.column(name).to_pylist()
    first, second = query(one), query(other)
    for name, requested in aggregates_of(one.schema).items():
        raw = zip(one.column(name).to_pylist(), other.column(name).to_pylist())
        pairs = zip(first[name].to_list(), second[name].to_list())
        compare = _COMPARE.get(requested.name)
        if requested.name == "distinct":
            for a, b in raw:
                assert np.array_equal(_registers(a), _registers(b)), name
        elif compare is None:
            assert first[name].to_list() == second[name].to_list(), name
        else:
            for a, b in pairs:
                compare(a, b)
                if requested.name == "sample" and draws:
                    assert sorted(a["values"]) == sorted(b["values"])


def _registers(image: bytes) -> np.ndarray:
    """The registers of an HLL_8 image, whichever state it is in (list, set or dense)."""
    lg_k, mode = image[3], image[7] & 3
    if mode == 2:
        return np.frombuffer(image, np.uint8, 1 << lg_k, 40)
    begin = 4 * image[0]
    coupons = np.frombuffer(image[begin : begin + (len(image) - begin) // 4 * 4], np.uint32)
    result = np.zeros(1 << lg_k, np.uint8)
    np.maximum.at(result, coupons & ((1 << lg_k) - 1), (coupons >> 26).astype(np.uint8))
    return result


def _close(a: Any, b: Any) -> None:
    assert a == b or a == pytest.approx(b, rel=1e-9)


def _close_spread(a: Any, b: Any) -> None:
    assert a == b or a == pytest.approx(b, rel=1e-6)


def _spread_alike(a: Any, b: Any) -> None:
    assert a["n"] == b["n"]
    for left, right in zip(a["quantiles"], b["quantiles"]):
        assert left["lower"] <= right["upper"] and right["lower"] <= left["upper"]


def _items_alike(a: Any, b: Any) -> None:
    left, right = ({item["item"]: item for item in items} for items in (a, b))
    for item in left.keys() & right.keys():
        assert left[item]["lower"] <= right[item]["upper"]
        assert right[item]["lower"] <= left[item]["upper"]
    # Where they don't name the same, the counts of those that only one names are within its bounds.
    least = min((item["upper"] for item in [*a, *b]), default=0)
    for items, only in ((left, left.keys() - right.keys()), (right, right.keys() - left.keys())):
        assert all(items[item]["lower"] <= least for item in only)


def _samples_alike(a: Any, b: Any) -> None:
    assert a["n"] == b["n"]
    assert len(a["values"]) == len(b["values"])
    if len(a["values"]) == a["n"]:
        assert sorted(a["values"]) == sorted(b["values"])


def _drawn_alike(a: Any, b: Any) -> None:
    assert a["n"] == b["n"] and len(a["values"]) == len(b["values"])


def _decayed_alike(a: Any, b: Any) -> None:
    assert a["n"] == b["n"] and a["estimate"] == pytest.approx(b["estimate"])


def _as_many(a: Any, b: Any) -> None:
    assert a["n"] == b["n"]


def _same_members(a: Any, b: Any) -> None:
    assert a["n"] == b["n"] and sorted(a["values"]) == sorted(b["values"])


def _totals_alike(a: Any, b: Any) -> None:
    assert {**a, "totals": None} == {**b, "totals": None}
    for left, right in zip(a["totals"], b["totals"], strict=True):
        for edge in left:
            _close(left[edge], right[edge])


_COMPARE: dict[str, Callable[[Any, Any], None]] = {
    "kll_quantiles": _spread_alike,
    "top_k": _items_alike,
    "sample": _samples_alike,
    "tail_quantiles": _spread_alike,
    "classic_quantiles": _spread_alike,
    "tdigest_quantiles": _as_many,
    "weighted_sample": _drawn_alike,
    "decayed_sample": _as_many,
    "recent_sample": _as_many,
    "stratified_sample": _as_many,
    "bernoulli_sample": _as_many,
    "hash_sample": _same_members,
    "var_opt": _as_many,
    "tuple": _totals_alike,
    "decayed_count": _decayed_alike,
    "sum": _close,
    "mean": _close,
    "variance": _close_spread,
}


@pytest.fixture(scope="session")
def json_of() -> Callable[[pl.DataFrame], list[bytes]]:
    """Rows as JSON messages, one each."""
    return lambda frame: frame.write_ndjson().encode().splitlines()


@pytest.fixture(scope="session")
def send(kafka: Any) -> Callable[..., None]:
    """Send values (null: a tombstone) to one partition of a topic, in order."""
    from confluent_kafka import Producer

    # Its complaints about a broker that has ended go nowhere.
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5, "log_level": 0}

    def sending(topic: str, values: list[bytes | None], partition: int = 0, **more: Any) -> None:
        producer = Producer(settings)
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
            producer.poll(0)
        assert producer.flush(120) == 0

    return sending


@pytest.fixture
def topic(kafka: Any) -> Callable[..., str]:
    """Makes a topic of another name each time."""

    def make(partitions: int = 1) -> str:
        name = f"t{uuid.uuid4().hex[:10]}"
        kafka.create_topic(name, partitions)
        return name

    return make


@pytest.fixture(scope="session")
def everything_from(kafka: Any) -> Callable[..., Stream]:
    """The stream `everything`, of a topic's JSON messages; rows in a language called "xx" are dropped."""

    def make(topic: str, requested: dict[str, ask.Aggregate] = REQUESTED) -> Stream:
        rows = Stream.from_kafka(
            topic, value=json(COLUMNS), time="at", bootstrap_servers=kafka.bootstrap_servers
        )
        wanted = rows.filter(pl.col("lang").is_null() | (pl.col("lang") != "xx"))
        return wanted.group_by("lang").tumbling("1m", delay="5s").agg(**requested)

    return make

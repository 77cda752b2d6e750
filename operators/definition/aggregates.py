"""What a stream computes: an aggregate of a column, by name.

Each function here returns the definition of one aggregate; `Stream.agg`, Spark's `sketch(df)` and the table
of sketches accept it. In a list column each element counts; nulls are skipped. All raise `TypeError` for a
column that isn't named by a string, and `SketchError` for a parameter out of range.
"""

from __future__ import annotations

from .aggregate import Aggregate, aggregate


def distinct(column: str, lg_k: int = 12) -> Aggregate:
    """The number of distinct values: HyperLogLog with 2^lg_k registers.

    The relative standard error is 1.04 / √(2^lg_k), 1.6 % at 12; answers have bounds at 95.4 % confidence.

    Nulls and empty strings are not counted, as in DataSketches. To count '', first replace it with a string
    that does not occur in the column.

    Source: Flajolet and others, HyperLogLog (2007); Apache DataSketches `hll`.

    >>> import streamgauge as sg
    >>> sg.distinct("user", lg_k=14).params
    {'lg_k': 14}
    """
    return aggregate("distinct", column, lg_k=lg_k)


def distinct_set(column: str, lg_k: int = 12) -> Aggregate:
    """The set of distinct values: Theta with the 2^lg_k smallest hashes.

    Exact up to 2^lg_k values; beyond, the relative standard error is 1 / √(2^lg_k − 1), 1.6 % at 12, with
    bounds at 95.4 % confidence. `compare` returns unions, intersections, differences and the Jaccard index
    of two such columns; Spark has `theta_union`, `theta_intersection` and `theta_difference` for them.

    Nulls and empty strings are not counted, as in DataSketches. To count '', first replace it with a string
    that does not occur in the column.

    Source: Dasgupta, Lang, Rhodes, Thaler, ICDT 2016; Apache DataSketches `theta`.

    >>> import streamgauge as sg
    >>> sg.distinct_set("user").params
    {'lg_k': 12}
    """
    return aggregate("distinct_set", column, lg_k=lg_k)


def quantiles(column: str, relative_accuracy: float = 0.01, weight: str | None = None) -> Aggregate:
    """The distribution of values: DDSketch; each quantile, tails included, is always within 1 % of its value.

    `relative_accuracy` sets another limit. A million normal, lognormal or Pareto values take at most 14 kB.
    In a column of whole numbers, those below 50 are exact, and larger ones are rounded to whole numbers if
    that stays within the 1 %. Points in time are refused; use `kll_quantiles` for them. A row counts as often
    as the number in column `weight` says. It may be a fraction, for example 1 / (the share of rows that were
    sampled). Rows with weight null or 0 are skipped, and a negative weight raises `ValueError`.

    Source: Masson, Rim, Lee, "DDSketch", VLDB 2019.

    >>> import streamgauge as sg
    >>> sg.quantiles("price").params
    {'relative_accuracy': 0.01}
    """
    return aggregate("quantiles", column, relative_accuracy=relative_accuracy, weight=weight)


def kll_quantiles(column: str, k: int = 200, weight: str | None = None) -> Aggregate:
    """The distribution of values: KLL, which Spark and DataSketches can merge and query as well.

    The rank of an answer is off by at most 1.33 % (k = 200, at 99 % confidence), so an extreme quantile of
    skewed values may be off by up to a fifth of its value; k = 4000, 90 kB, reduces the rank error to 0.1 %.
    A row counts as often as the whole number in column `weight` says, for example the count of a histogram
    bucket. Rows with weight null or 0 are skipped, and a negative weight or a fraction raises `ValueError`.

    Source: Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016.

    >>> import streamgauge as sg
    >>> sg.kll_quantiles("price", k=4000).params
    {'k': 4000}
    >>> sg.kll_quantiles("milliseconds", weight="requests").inputs
    {'weight': 'requests'}
    """
    return aggregate("kll_quantiles", column, k=k, weight=weight)


def tail_quantiles(column: str, k: int = 12, high_ranks: bool = True) -> Aggregate:
    """The distribution of values, most accurate near the highest: REQ, for p99.9 and beyond.

    A rank is off by at most 2.2 % of its distance to rank 1 (k = 12, at 95.4 % confidence): a reported p99.99
    lies between p99.9898 and p99.9902. Without `high_ranks` the lowest ranks are the accurate ones. The error
    shrinks as k grows; at 12, four million values take 10 kB. Values are stored as 4-byte floats, within 6e-8
    of each. Points in time are refused, because such floats can't distinguish them.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for a `k` that isn't even or
    outside 4 to 1024.

    Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021.

    >>> import streamgauge as sg
    >>> sg.tail_quantiles("ms", k=24).params
    {'k': 24, 'high_ranks': True}
    """
    return aggregate("tail_quantiles", column, k=k, high_ranks=high_ranks)


def tdigest_quantiles(column: str, k: int = 200) -> Aggregate:
    """The distribution of values, for readers of DataSketches' t-digests.

    No error is promised, because no bound holds for every stream; `docs/sketches.md` shows measurements. If
    no other system reads the bytes, use `quantiles`, `kll_quantiles` or `tail_quantiles`, which promise a
    bound. NaN and infinities are skipped.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for a `k` outside 10 to 65535.

    Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019.

    >>> import streamgauge as sg
    >>> sg.tdigest_quantiles("price").params
    {'k': 200}
    """
    return aggregate("tdigest_quantiles", column, k=k)


def frequency(column: str, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> Aggregate:
    """How often any value occurred, chosen at query time: a count-min sketch.

    An answer is never too low, and with probability `confidence` it is too high by at most `eps` of all rows.

    Source: Cormode, Muthukrishnan, "An Improved Data Stream Summary", J. Algorithms 2005.

    >>> import streamgauge as sg
    >>> sg.frequency("item", eps=0.01).params["eps"]
    0.01
    """
    return aggregate("frequency", column, eps=eps, confidence=confidence, seed=seed)


def membership(column: str, capacity: int = 100_000, fpp: float = 0.01) -> Aggregate:
    """Whether a value occurred, chosen at query time: a blocked Bloom filter.

    A value that occurred is always found. A value that did not is found with probability `fpp` at most, up to
    `capacity` distinct values; beyond that, more often. It takes 10.5 bits for each of `capacity` at 1 %. The
    answer reports how full it is; `Bloom.from_bytes(cell).contains(values)` looks values up.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for parameters out of range.

    Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> posts = sg.Stream.from_schema({"user": pl.String, "at": pl.String}, time="at")
    >>> tester = sg.StreamTester(posts.tumbling("1m").agg(seen=sg.membership("user", capacity=1_000)))
    >>> _ = tester.feed([{"user": user, "at": "2026-01-01T00:00:01"} for user in ("ann", "bob")])
    >>> cell = tester.finish().tables().column("seen")[0].as_py()
    >>> sg.Bloom.from_bytes(cell).contains(["ann", "eve"]).tolist()
    [True, False]
    """
    return aggregate("membership", column, capacity=capacity, fpp=fpp)


def top_k(column: str, k: int = 10, max_size: int = 4096) -> Aggregate:
    """The `k` most frequent values, each with its estimated count and bounds.

    The true count always lies within the bounds, which are at most 3.5 / `max_size` of all values apart,
    0.085 % at 4,096. A value with a larger share is therefore always found. `max_size` is a power of two from
    8; at 4,096 a full sketch takes 50 kB plus the bytes of its strings. `k` belongs to the question: tables
    with different `k` can be merged, and each query has its own. Values are whole numbers, strings, or times
    and dates, which keep their type.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for parameters out of range.

    Source: Anderson, Bevan, Lang, Liberty, Rhodes, Thaler, "A High-Performance Algorithm for Identifying
    Frequent Items in Data Streams", IMC 2017; Apache DataSketches `frequencies`.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> posts = sg.Stream.from_schema({"tag": pl.String, "at": pl.String}, time="at")
    >>> tester = sg.StreamTester(posts.tumbling("1m").agg(tags=sg.top_k("tag", k=2)))
    >>> _ = tester.feed([{"tag": tag, "at": "2026-01-01T00:00:01"} for tag in "aababc"])
    >>> [(row["item"], row["lower"], row["upper"]) for row in tester.finish().windows()["tags"][0]]
    [('a', 3, 3), ('b', 2, 2)]
    """
    return aggregate("top_k", column, k=k, max_size=max_size)


def sample(column: str, k: int = 100) -> Aggregate:
    """A uniform sample of `k` values: every set of `k` values is equally likely to be the sample.

    A share estimated from the sample is within √(ln(40) / 2k) of the true one at 95 % confidence, 0.14 at k =
    100 and 0.043 at 1,000; the answer reports it as `error`. If there are at most `k` values, the sample
    contains all of them. To sample several columns together, combine them into a struct first, as in
    ``.with_columns(row=pl.struct("user", "text"))``.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for a `k` out of range.

    Source: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006; Hoeffding 1963.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> posts = sg.Stream.from_schema({"user": pl.String, "at": pl.String}, time="at")
    >>> tester = sg.StreamTester(posts.tumbling("1m").agg(some=sg.sample("user", k=2)))
    >>> _ = tester.feed([{"user": user, "at": "2026-01-01T00:00:01"} for user in "abcdef"])
    >>> some = tester.finish().windows()["some"][0]
    >>> some["n"], len(some["values"]), set(some["values"]) <= set("abcdef")
    (6, 2, True)
    """
    return aggregate("sample", column, k=k)


def weighted_sample(column: str, weight: str, k: int = 100) -> Aggregate:
    """`k` values drawn without replacement, in proportion to the numbers in column `weight`.

    The sample has exactly this distribution; there is no error to bound.

    Source: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006.

    >>> import streamgauge as sg
    >>> sg.weighted_sample("order", weight="amount").inputs
    {'weight': 'amount'}
    """
    return aggregate("weighted_sample", column, weight=weight, k=k)


def stratified_sample(column: str, key: str, k: int = 10, capacity: int = 100_000) -> Aggregate:
    """A uniform sample of `k` values for each value of column `key`, at most `capacity` in all.

    A share estimated from a key's m values is within 1.36 / √m of the key's true one at 95 % confidence.

    >>> import streamgauge as sg
    >>> sg.stratified_sample("text", key="lang", k=3).inputs
    {'key': 'lang'}
    """
    return aggregate("stratified_sample", column, key=key, k=k, capacity=capacity)


def hash_sample(column: str, key: str, p: float = 0.01) -> Aggregate:
    """All values of a share `p` of the keys in column `key`: the same keys in every stream and window.

    Of m keys it contains p·m, within 2·√(m·p·(1 − p)) at 95 % confidence, and exactly all values of each.

    Source: Duffield, Grossglauser, "Trajectory Sampling", SIGCOMM 2000.

    >>> import streamgauge as sg
    >>> sg.hash_sample("page", key="user", p=0.1).inputs
    {'key': 'user'}
    """
    return aggregate("hash_sample", column, key=key, p=p)


def bernoulli_sample(column: str, p: float = 0.01) -> Aggregate:
    """Each value with probability `p`, independently.

    Of n values it contains p·n, within 2·√(n·p·(1 − p)) at 95 % confidence.

    >>> import streamgauge as sg
    >>> sg.bernoulli_sample("text", p=0.001).params
    {'p': 0.001}
    """
    return aggregate("bernoulli_sample", column, p=p)


def recent_sample(column: str, window: float = 3600.0, k: int = 100) -> Aggregate:
    """A uniform sample of `k` values from the last `window` seconds of event time, or any shorter span.

    A share estimated from it is within 1.36 / √k of the true one at 95 % confidence.

    Source: Babcock, Datar, Motwani, "Sampling from a Moving Window", SODA 2002.

    >>> import streamgauge as sg
    >>> sg.recent_sample("text", window=60.0).params
    {'k': 100, 'window': 60.0}
    """
    return aggregate("recent_sample", column, window=window, k=k)


def decayed_sample(column: str, half_life: float = 3600.0, k: int = 100) -> Aggregate:
    """`k` values; the chance of a value halves with every `half_life` seconds of age.

    They are distributed exactly like draws without replacement with these chances; there is no error to
    bound.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section V.

    >>> import streamgauge as sg
    >>> sg.decayed_sample("text", half_life=60.0).params
    {'k': 100, 'half_life': 60.0}
    """
    return aggregate("decayed_sample", column, half_life=half_life, k=k)


def decayed_count(column: str, half_life: float = 3600.0) -> Aggregate:
    """The number of values; the weight of a value halves with every `half_life` seconds of age.

    Exact up to rounding.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section IV-A.

    >>> import streamgauge as sg
    >>> sg.decayed_count("click", half_life=600.0).params
    {'half_life': 600.0}
    """
    return aggregate("decayed_count", column, half_life=half_life)


def decayed_quantiles(column: str, half_life: float = 3600.0, relative_accuracy: float = 0.01) -> Aggregate:
    """The distribution of values, with the weights of `decayed_count`.

    Each quantile is always within 1 % of its value, or the share that `relative_accuracy` sets.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, in DDSketch's buckets.

    >>> import streamgauge as sg
    >>> sg.decayed_quantiles("latency", half_life=600.0).params["half_life"]
    600.0
    """
    return aggregate("decayed_quantiles", column, half_life=half_life, relative_accuracy=relative_accuracy)


def sliding_distinct(column: str, window: float = 3600.0, lg_k: int = 12) -> Aggregate:
    """The number of distinct values in the last `window` seconds of event time, and in any shorter span.

    The relative standard error is 1.04 / √(2^lg_k), 1.6 % at 12; answers have bounds at 95.4 % confidence.

    Source: Chabchoub, Hébrail, Sliding HyperLogLog (2010).

    >>> import streamgauge as sg
    >>> sg.sliding_distinct("user", window=60.0).params["window"]
    60.0
    """
    return aggregate("sliding_distinct", column, window=window, lg_k=lg_k)


def sliding_membership(
    column: str, capacity: int = 100_000, fpp: float = 0.01, window: float = 3600.0
) -> Aggregate:
    """Whether a value occurred in the last `window` seconds of event time, or in any shorter span.

    A value that did is always found. A value that did not, nor shortly before (1/128 of `window`), is found
    with probability `fpp` at most, while such a span has up to `capacity` distinct values; with more it is
    found more often, and the answer reports how often. It takes 10.5 bytes for each of `capacity` at 1 %,
    however long the stream; `SlidingBloom.from_bytes(cell).contains(values)` looks values up.

    Raises `TypeError` for a column that isn't named by a string, `SketchError` for parameters out of range.

    Source: Kong, He, Shao, Gui, Cheng, "Time-Out Bloom Filter", ICOIN 2006.

    >>> import streamgauge as sg
    >>> sg.sliding_membership("user", window=60.0).params["window"]
    60.0
    """
    return aggregate("sliding_membership", column, capacity=capacity, fpp=fpp, window=window)


def count(column: str | None = None) -> Aggregate:
    """The number of rows, or of a column's values that are not null. Exact.

    >>> import streamgauge as sg
    >>> sg.count().columns, sg.count("user").columns
    ([], ['user'])
    """
    return aggregate("count", column)


def sum(column: str) -> Aggregate:
    """The sum: exact for whole numbers, stored wider than int64; for floats a double, exact up to rounding.

    The sum of decimals of up to 28 digits is exact as well, a decimal of 38; of wider ones it is a double.

    Sums of whole numbers are returned as int64, or as decimals if a window's sum exceeds that; on Spark
    always as decimals.

    >>> import streamgauge as sg
    >>> sg.sum("amount").columns
    ['amount']
    """
    return aggregate("sum", column)


def mean(column: str) -> Aggregate:
    """The mean. Exact up to rounding; of decimals of up to 28 digits the double nearest to the exact one.

    >>> import streamgauge as sg
    >>> sg.mean("amount").columns
    ['amount']
    """
    return aggregate("mean", column)


def min(column: str) -> Aggregate:
    """The smallest value. Exact.

    >>> import streamgauge as sg
    >>> sg.min("amount").columns
    ['amount']
    """
    return aggregate("min", column)


def max(column: str) -> Aggregate:
    """The largest value. Exact.

    >>> import streamgauge as sg
    >>> sg.max("amount").columns
    ['amount']
    """
    return aggregate("max", column)


def first(column: str) -> Aggregate:
    """The value with the earliest event time. Exact.

    If several rows have that time, it is the first in Kafka: the lowest offset of the lowest partition. Rows
    of a DataFrame or an Arrow table have no such order; there it is the smallest value.

    >>> import streamgauge as sg
    >>> sg.first("price").columns
    ['price']
    """
    return aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value with the latest event time. Exact.

    If several rows have that time, it is the last in Kafka: the highest offset of the highest partition. Rows
    of a DataFrame or an Arrow table have no such order; there it is the largest value.

    >>> import streamgauge as sg
    >>> sg.last("price").columns
    ['price']
    """
    return aggregate("last", column)


def variance(column: str) -> Aggregate:
    """The sample variance (n − 1). Exact up to rounding.

    Source: Chan, Golub, LeVeque, on updating sample variances pairwise (1979).

    >>> import streamgauge as sg
    >>> sg.variance("price").columns
    ['price']
    """
    return aggregate("variance", column)

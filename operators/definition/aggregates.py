"""What is asked of a stream: an aggregate of a column, by name.

Each function here makes the definition of one aggregate; `Stream.agg`, Spark's `sketch(df)` and the table of
sketches understand it. In a list column each element counts; nulls are skipped. All raise `TypeError` for a
column that isn't named by a string, and `SketchError` for a parameter out of range.
"""

from __future__ import annotations

from .aggregate import Aggregate, aggregate


def distinct(column: str, lg_k: int = 12) -> Aggregate:
    """How many different values: HyperLogLog with 2^lg_k registers.

    The relative standard error is 1.04 / √(2^lg_k), 1.6 % at 12; answers have bounds at 95.4 % confidence.

    >>> distinct("user", lg_k=14).params
    {'lg_k': 14}
    """
    return aggregate("distinct", column, lg_k=lg_k)


def distinct_set(column: str, lg_k: int = 12) -> Aggregate:
    """Which different values, as a set: Theta with the 2^lg_k smallest hashes.

    Exact up to 2^lg_k values; beyond, the relative standard error is 1 / √(2^lg_k − 1), 1.6 % at 12, with
    bounds at 95.4 % confidence. `compare` gives unions, intersections, differences and the Jaccard index of
    two such columns; Spark has `theta_union`, `theta_intersection` and `theta_difference` for them.

    >>> distinct_set("user").params
    {'lg_k': 12}
    """
    return aggregate("distinct_set", column, lg_k=lg_k)


def quantiles(column: str, relative_accuracy: float = 0.01) -> Aggregate:
    """How values are spread: DDSketch; each quantile, tails included, is always within 1 % of its value.

    `relative_accuracy` sets another share. A million normal, lognormal or Pareto values take at most 14 kB.
    In a column of whole numbers those below 50 are exact, and larger ones whole if that keeps within the 1 %.
    Points in time are refused; ask for their `kll_quantiles`.

    >>> quantiles("price").params
    {'relative_accuracy': 0.01}
    """
    return aggregate("quantiles", column, relative_accuracy=relative_accuracy)


def kll_quantiles(column: str, k: int = 200) -> Aggregate:
    """How values are spread: KLL, which Spark and DataSketches can merge and query, too.

    The rank of an answer is off by at most 1.65 % (k = 200, at 99 % confidence), so a far quantile of skewed
    values by up to a fifth of its value; k = 4000, 90 kB, brings ranks to 0.1 %.

    >>> kll_quantiles("price", k=4000).params
    {'k': 4000}
    """
    return aggregate("kll_quantiles", column, k=k)


def frequency(column: str, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> Aggregate:
    """How often any value occurred, asked afterwards: a count-min sketch.

    An answer is never too low, and with probability `confidence` too high by at most `eps` of all rows.

    >>> frequency("item", eps=0.01).params["eps"]
    0.01
    """
    return aggregate("frequency", column, eps=eps, confidence=confidence, seed=seed)


def membership(column: str, capacity: int = 100_000, fpp: float = 0.01) -> Aggregate:
    """Which values occurred: a Bloom filter.

    A value that occurred is always found; one that didn't with probability `fpp` at most, as long as there
    were no more than `capacity` different values.

    >>> membership("url", capacity=1_000_000).params["capacity"]
    1000000
    """
    return aggregate("membership", column, capacity=capacity, fpp=fpp)


def top_k(column: str, k: int = 10, max_size: int = 4096) -> Aggregate:
    """The `k` most frequent values, with bounds of their counts that always hold.

    Bounds are apart by at most 3.5 / `max_size` of all rows (0.085 % at 4096), so a value more frequent than
    that is always found.

    >>> top_k("tags", k=3).answer
    {'k': 3}
    """
    return aggregate("top_k", column, k=k, max_size=max_size)


def sample(column: str, k: int = 100) -> Aggregate:
    """`k` values, each set of `k` as likely as any other: a uniform sample.

    A share read off it is within 1.36 / √k of the true one at 95 % confidence; the answer's `error` says so.

    >>> sample("text", k=5).params
    {'k': 5}
    """
    return aggregate("sample", column, k=k)


def weighted_sample(column: str, weight: str, k: int = 100) -> Aggregate:
    """`k` values, drawn one after another in proportion to the numbers in column `weight`, none twice.

    That is exactly how they are distributed; there is no error to bound.

    >>> weighted_sample("order", weight="amount").inputs
    {'weight': 'amount'}
    """
    return aggregate("weighted_sample", column, weight=weight, k=k)


def stratified_sample(column: str, key: str, k: int = 10, capacity: int = 100_000) -> Aggregate:
    """`k` values for each value of column `key`, at most `capacity` in all, each key's uniformly.

    A share read off a key's m values is within 1.36 / √m of that key's at 95 % confidence.

    >>> stratified_sample("text", key="lang", k=3).inputs
    {'key': 'lang'}
    """
    return aggregate("stratified_sample", column, key=key, k=k, capacity=capacity)


def hash_sample(column: str, key: str, p: float = 0.01) -> Aggregate:
    """All values of a share `p` of the keys in column `key`: the same keys in every stream and window.

    Of m keys it holds p·m, within 2·√(m·p·(1 − p)) at 95 % confidence, and all values of each, exactly.

    >>> hash_sample("page", key="user", p=0.1).inputs
    {'key': 'user'}
    """
    return aggregate("hash_sample", column, key=key, p=p)


def bernoulli_sample(column: str, p: float = 0.01) -> Aggregate:
    """Each value with probability `p`, independently.

    Of n values it holds p·n, within 2·√(n·p·(1 − p)) at 95 % confidence.

    >>> bernoulli_sample("text", p=0.001).params
    {'p': 0.001}
    """
    return aggregate("bernoulli_sample", column, p=p)


def recent_sample(column: str, window: float = 3600.0, k: int = 100) -> Aggregate:
    """`k` values of the last `window` seconds of event time, and of any shorter span, uniformly.

    A share read off it is within 1.36 / √k of the true one at 95 % confidence.

    >>> recent_sample("text", window=60.0).params
    {'k': 100, 'window': 60.0}
    """
    return aggregate("recent_sample", column, window=window, k=k)


def decayed_sample(column: str, half_life: float = 3600.0, k: int = 100) -> Aggregate:
    """`k` values, where the chance of a value halves with every `half_life` seconds of age.

    They are distributed exactly as draws without replacement by these chances; there is no error to bound.

    >>> decayed_sample("text", half_life=60.0).params
    {'k': 100, 'half_life': 60.0}
    """
    return aggregate("decayed_sample", column, half_life=half_life, k=k)


def decayed_count(column: str, half_life: float = 3600.0) -> Aggregate:
    """How many values, where one counts half as much for every `half_life` seconds of age.

    Exact up to rounding.

    >>> decayed_count("click", half_life=600.0).params
    {'half_life': 600.0}
    """
    return aggregate("decayed_count", column, half_life=half_life)


def decayed_quantiles(column: str, half_life: float = 3600.0, relative_accuracy: float = 0.01) -> Aggregate:
    """How values are spread, with the weights of `decayed_count`.

    Each quantile is always within 1 % of its value, or the share that `relative_accuracy` sets.

    >>> decayed_quantiles("latency", half_life=600.0).params["half_life"]
    600.0
    """
    return aggregate("decayed_quantiles", column, half_life=half_life, relative_accuracy=relative_accuracy)


def sliding_distinct(column: str, window: float = 3600.0, lg_k: int = 12) -> Aggregate:
    """How many different values in the last `window` seconds of event time, and in any shorter span.

    The relative standard error is 1.04 / √(2^lg_k), 1.6 % at 12; answers have bounds at 95.4 % confidence.

    >>> sliding_distinct("user", window=60.0).params["window"]
    60.0
    """
    return aggregate("sliding_distinct", column, window=window, lg_k=lg_k)


def count(column: str | None = None) -> Aggregate:
    """The number of rows, or of a column's values that are not null. Exact.

    >>> count().columns, count("user").columns
    ([], ['user'])
    """
    return aggregate("count", column)


def sum(column: str) -> Aggregate:
    """The sum: exact for whole numbers, kept wider than int64; for floats a double, exact up to rounding.

    Sums of whole numbers are answered as int64, and as decimals if a window's sum is beyond that; on Spark
    always as decimals.

    >>> sum("amount").columns
    ['amount']
    """
    return aggregate("sum", column)


def mean(column: str) -> Aggregate:
    """The mean. Exact up to rounding.

    >>> mean("amount").columns
    ['amount']
    """
    return aggregate("mean", column)


def min(column: str) -> Aggregate:
    """The smallest value. Exact.

    >>> min("amount").columns
    ['amount']
    """
    return aggregate("min", column)


def max(column: str) -> Aggregate:
    """The largest value. Exact.

    >>> max("amount").columns
    ['amount']
    """
    return aggregate("max", column)


def first(column: str) -> Aggregate:
    """The value with the earliest event time. Exact.

    Of several with that time it is the one that Kafka had first: the lowest offset of the lowest partition.
    Rows of a DataFrame or an Arrow table have no such order; of theirs it is the smallest value.

    >>> first("price").columns
    ['price']
    """
    return aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value with the latest event time. Exact.

    Of several with that time it is the one that Kafka had last: the highest offset of the highest partition.
    Rows of a DataFrame or an Arrow table have no such order; of theirs it is the largest value.

    >>> last("price").columns
    ['price']
    """
    return aggregate("last", column)


def variance(column: str) -> Aggregate:
    """The sample variance (n − 1). Exact up to rounding.

    >>> variance("price").columns
    ['price']
    """
    return aggregate("variance", column)

"""Aggregates of families that exist to read and merge sketches that other systems stored.

Their bytes are those of DataSketches. For new data each docstring names a better family.
"""

from __future__ import annotations

from .aggregate import Aggregate, aggregate


def cpc(column: str, lg_k: int = 11) -> Aggregate:
    """The number of distinct values, in the fewest bytes: CPC; `distinct` is faster.

    The relative standard error is 0.59 / √(2^lg_k), 1.3 % at 11, and 0.69 / √(2^lg_k) once sketches were
    merged. Raises `TypeError` for a column that isn't named by a string, `SketchError` for an `lg_k` outside
    4 to 26.

    >>> import streamgauge as sg
    >>> sg.stored.cpc("user").params
    {'lg_k': 11}
    """
    return aggregate("cpc", column, lg_k=lg_k)


def classic_quantiles(column: str, k: int = 128) -> Aggregate:
    """The distribution of values: DataSketches' first quantiles sketch; `kll_quantiles` is smaller.

    Ranks are off by at most 1.41 % at 99 % confidence (k = 128). Raises `TypeError` for a column that isn't
    named by a string, `SketchError` for a `k` that isn't a power of 2 from 2 to 32768.

    >>> import streamgauge as sg
    >>> sg.stored.classic_quantiles("price").params
    {'k': 128}
    """
    return aggregate("classic_quantiles", column, k=k)


def var_opt(column: str, weight: str, k: int = 100) -> Aggregate:
    """`k` values sampled by the weights in column `weight`, for sums over subsets: VarOpt.

    Sums of subsets are unbiased, and `VarOpt.subset_sum` bounds them at 95.4 % confidence. For new data
    `weighted_sample` accepts values of any type. Raises `TypeError` for columns that aren't named by strings,
    `SketchError` for a `k` outside 1 to 2^20.

    >>> import streamgauge as sg
    >>> sg.stored.var_opt("item", weight="price").inputs
    {'weight': 'price'}
    """
    return aggregate("var_opt", column, weight=weight, k=k)


def tuple(column: str, value: str, lg_k: int = 12, kind: str = "double", mode: str = "sum") -> Aggregate:
    """The number of distinct values, and the totals of column `value` over them: a Tuple sketch.

    The relative standard error is 1 / √(2^lg_k − 1), 1.6 % at 12; the answer's bounds are at 95.4 %
    confidence. `kind` and `mode` are as in `Tuple`. For counts and sets without totals use `distinct_set`.
    Raises `TypeError` for columns that aren't named by strings, `SketchError` for parameters out of range.

    >>> import streamgauge as sg
    >>> sg.stored.tuple("user", value="spent").params
    {'lg_k': 12, 'kind': 'double', 'mode': 'sum'}
    """
    return aggregate("tuple", column, value=value, lg_k=lg_k, kind=kind, mode=mode)

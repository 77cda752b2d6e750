"""Functions that create and query sketches in Spark columns, with the same names as in SQL.

    import streamgauge.spark.functions as S

    users = posts.groupBy("lang").agg(S.sketch_distinct("user", lg_k=11).alias("users"))
    users.select("lang", S.answer_distinct("users").estimate)

A string names a column, as in ``pyspark.sql.functions``; a function's further arguments are Python values.
They need no registration. ``dir(S)`` lists the functions, ``help(S.sketch_distinct)`` describes
one, and docs/spark_functions.md all. `approx_top_k` and related functions are Spark's own, which PySpark
leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..spark_udafs.functions.catalogue import catalogue
from ..spark_udafs.functions.columns import column_function
from ..spark_udafs.functions.native import (
    approx_top_k,
    approx_top_k_accumulate,
    approx_top_k_combine,
    approx_top_k_estimate,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

_NATIVE = [
    approx_top_k.__name__,
    approx_top_k_accumulate.__name__,
    approx_top_k_combine.__name__,
    approx_top_k_estimate.__name__,
]


def __getattr__(name: str) -> Callable[..., Column]:
    return column_function(name)


def __dir__() -> list[str]:
    return [*_NATIVE, *catalogue()]

"""A helpful error if an aggregate of this package is passed to Spark's own `agg`.

PySpark only asserts there that all arguments are columns. An `AssertionError` can't carry our note
(`functions.advice`), so both classes of groups check their arguments first.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any

from pyspark.sql.group import GroupedData

from ...operators.definition.aggregate import Aggregate


def refuse_in_agg(groups: type) -> None:
    """Make a group class's `agg` raise `TypeError` for aggregates of this package."""
    spark_agg: Any = vars(groups)["agg"]
    if getattr(spark_agg, "__wrapped__", None) is not None:
        return

    @wraps(spark_agg)
    def agg(self: Any, *exprs: Any) -> Any:
        ours = next((one for one in exprs if isinstance(one, Aggregate)), None)
        if ours is not None:
            column = "" if ours.column is None else f'"{ours.column}"'
            raise TypeError(
                f"agg: {ours.name}({column}) is streamgauge's, and Spark's own agg takes columns alone; "
                f"write streamgauge.spark.sketch(df).groupBy(...).agg(name={ours.name}({column}))"
            )
        return spark_agg(self, *exprs)

    setattr(groups, "agg", agg)  # noqa: B010 - mypy knows no such attribute


def refuse_in_spark() -> None:
    """Make Spark's own `agg` explain what to write; over Connect if a session has loaded its classes."""
    refuse_in_agg(GroupedData)
    connect = sys.modules.get("pyspark.sql.connect.group")
    if connect is not None:
        refuse_in_agg(connect.GroupedData)

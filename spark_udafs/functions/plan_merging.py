"""Disable Spark's merging of queries without ``GROUP BY``, which fails if one has a Python aggregate.

From 4.3 on, Spark reads a table once for all parts of a query that aggregate the whole table, such as both
sides of a ``UNION ALL`` or two subqueries (`MergeSubplans`). To see whether two aggregates can run together,
it asks each for its buffer, which Python aggregates don't have: ``INTERNAL_ERROR …
UnevaluableAggregateFunc.aggBufferAttributes should not be called``. So sessions with our functions exclude
that rule; their queries read such a table once for each part, as in earlier versions.
"""

from __future__ import annotations

from typing import Any

_RULE = "org.apache.spark.sql.execution.planmerging.MergeSubplans"
_EXCLUDED = "spark.sql.optimizer.excludedRules"


def leave_apart(spark: Any) -> None:
    """Add the rule that merges queries without ``GROUP BY`` to a session's excluded rules."""
    if spark is None:
        return
    excluded = spark.conf.get(_EXCLUDED, None)
    if _RULE not in (excluded or ""):
        spark.conf.set(_EXCLUDED, ",".join(filter(None, (excluded, _RULE))))

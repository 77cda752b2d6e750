"""Querying a table of many groups at once against group by group: the same answers, with bounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge import distinct, distinct_set, kll_quantiles, quantiles, sample, top_k
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.table.window_groups import answers

from .measure import medians

GROUPS, ROWS = 3_000, 300_000
REQUESTED = {
    "user": (distinct("user"), distinct_set("user"), sample("user"), top_k("user")),
    "price": (quantiles("price"), kll_quantiles("price")),
}


def one_by_one(requested: Aggregate, column: pa.Array) -> pl.Series:
    """Each group's sketch by itself."""
    groups = requested.groups(len(column))
    groups.merge(np.arange(len(column)), column)
    return pl.Series([groups[group].answer(**requested.answer) for group in range(len(column))])


def at_once(requested: Aggregate, column: pa.Array) -> pl.Series:
    """As `query` does it."""
    return pl.Series(answers(requested, column))


def main() -> list[dict[str, Any]]:
    """A row an aggregate."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, GROUPS, ROWS)
    columns = {"user": random.zipf(1.3, ROWS) % 5_000, "price": random.lognormal(0, 1, ROWS)}
    collected = []
    for name, aggregates in REQUESTED.items():
        values = pa.array(columns[name])
        for aggregate in aggregates:
            requested = aggregate.typed(values.type)
            groups = requested.groups(GROUPS)
            groups.update(numbers, values)
            column = groups.to_arrow()
            assert at_once(requested, column).to_list() == one_by_one(requested, column).to_list()
            ours, peer = medians(
                partial(at_once, requested, column),
                partial(one_by_one, requested, column),
                runs=3,
                warm=False,
            )
            collected.append(
                {
                    "claim": f"query {requested.name} of {GROUPS:,} groups",
                    "ours": f"{ours / GROUPS * 1e6:.1f} µs a group",
                    "peer": f"one by one: {peer / GROUPS * 1e6:.1f} µs",
                    "ratio": f"{peer / ours:.0f}",
                    "target": "report",
                }
            )
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)

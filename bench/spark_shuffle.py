"""What crosses Spark's shuffle as the input grows 1, 10 and 100 times at 1,000 groups.

Sketches are made where the rows are, so rows and bytes of the shuffle depend on groups and tasks, and not on
the rows. Read from Spark's own status, over four input tasks.
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.request import urlopen

from streamgauge import distinct, kll_quantiles, quantiles, top_k
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark import as_table, sketch
from streamgauge.spark_udafs.session.session import session

ROWS = int(os.environ.get("ROWS", 200_000))
"""The rows of the first step; the last has a hundred times as many."""
GROUPS, TASKS = 1_000, 4
REQUESTED: dict[str, dict[str, Aggregate]] = {
    "by Catalyst": {"users": distinct("user"), "prices": kll_quantiles("price"), "tags": top_k("user")},
    "in buckets": {"users": distinct("user"), "prices": quantiles("price")},
}


def shuffled(spark: Any) -> tuple[int, int]:
    """Rows and bytes that all stages so far have written to the shuffle."""
    context = spark.sparkContext
    with urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages") as answer:
        stages = json.load(answer)
    return tuple(sum(s[f"shuffleWrite{what}"] for s in stages) for what in ("Records", "Bytes"))  # type: ignore[return-value]


def main() -> list[dict[str, Any]]:
    """A row a way of merging."""
    settings = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    spark = session("bench", "local[2]", settings)
    collected = []
    for name, requested in REQUESTED.items():
        steps = []
        for times in (1, 10, 100):
            rows = spark.range(ROWS * times, numPartitions=TASKS).selectExpr(
                f"pmod(xxhash64(id), {GROUPS}) AS key", "xxhash64(id, 1) % 5000 AS user", "rand(1) AS price"
            )
            before = shuffled(spark)
            assert as_table(sketch(rows).groupBy("key").agg(**requested)).num_rows == GROUPS
            steps.append([now - then for now, then in zip(shuffled(spark), before)])
        reported = ", ".join(f"{count:,} ({size / 1e6:.1f} MB)" for count, size in steps)
        collected.append(
            {
                "claim": f"rows (bytes) shuffled, input × 1, 10, 100 from {ROWS:,} rows, merged {name}",
                "ours": reported,
                "peer": "",
                "ratio": f"{steps[2][0] / steps[0][0]:.2f} × the rows",
                "target": "constant in rows",
            }
        )
    spark.stop()
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)

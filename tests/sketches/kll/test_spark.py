"""KLL against Spark's own functions, both ways, for each kind it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.kll import KLL

pytestmark = pytest.mark.spark

KINDS = {"double": "double", "float": "float", "long": "bigint"}
N = 20_000


def test_spark_writes_and_reads_them(spark: Any) -> None:
    stored = spark.range(N).selectExpr(
        *(f"kll_sketch_agg_{sql}(cast(id * 3 as {sql})) {kind}" for kind, sql in KINDS.items())
    )
    row, rows, collected = stored.first(), [], []
    for kind, sql in KINDS.items():
        theirs = KLL.from_bytes(bytes(row[kind]), kind)
        assert theirs.n == N and theirs.quantiles([0, 1]) == [0, 3 * (N - 1)]
        assert theirs.rank(3 * N // 2) == pytest.approx(0.5, abs=1.5 * theirs.normalized_rank_error())
        ours = KLL(200, kind, seed=1).update(np.arange(N, 2 * N) * 3)
        rows.append(bytearray(ours.to_bytes()))
        united = f"kll_sketch_merge_{sql}({kind}, ours_{kind})"
        collected += [
            f"kll_sketch_get_n_{sql}({united}) n_{kind}",
            f"kll_sketch_get_quantile_{sql}({united}, 0.5D) middle_{kind}",
            f"{united} united_{kind}",
        ]
    ours = spark.createDataFrame([tuple(rows)], ", ".join(f"ours_{kind} binary" for kind in KINDS))
    result = stored.crossJoin(ours).selectExpr(*collected).first()
    for kind in KINDS:
        assert result[f"n_{kind}"] == 2 * N
        assert result[f"middle_{kind}"] == pytest.approx(3 * N, rel=0.06)
        assert KLL.from_bytes(bytes(result[f"united_{kind}"]), kind).n == 2 * N

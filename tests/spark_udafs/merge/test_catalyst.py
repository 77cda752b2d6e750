"""What Catalyst sketches by itself has the registers that our own sketches have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from streamgauge import HLL, distinct
from streamgauge.spark import sketch
from streamgauge.spark_udafs.frames.tables import as_table

pytestmark = pytest.mark.spark


def test_one_ungrouped_hll_is_catalyst_s_own_with_our_registers(
    spark: Any, frame_of: Callable[..., pl.DataFrame], capsys: Any
) -> None:
    frame = (
        frame_of(9, rows=3_000)
        .select("user", "item", "price")
        .with_columns(raw=pl.col("user").cast(pl.Binary), small=(pl.col("item") % 100).cast(pl.Int32))
    )
    frame = pl.concat(
        [frame, frame.head(2).with_columns(user=pl.lit(""), raw=pl.lit(b""), item=pl.lit(-5, pl.Int64))]
    )
    rows = spark.createDataFrame(frame.to_arrow()).repartition(3)
    names = ("user", "item", "raw", "small")
    aggregates = {f"of_{name}": distinct(name, lg_k=11) for name in names}
    table = sketch(rows).agg(**aggregates)
    table.explain()
    assert "MapInArrow" not in capsys.readouterr().out
    result = as_table(table)
    assert result.num_rows == 1 and result.column_names == [*aggregates]
    for name in names:
        ours = HLL(lg_k=11).update(frame[name].to_arrow())
        theirs = HLL.from_bytes(result[f"of_{name}"][0].as_py())
        # A union's estimate follows from its registers alone, and uniting adds nothing to either.
        assert (ours | theirs).estimate() == (ours | ours).estimate() == (theirs | theirs).estimate()
        assert theirs.estimate() == pytest.approx(ours.estimate(), rel=0.05)
    nothing = as_table(sketch(rows.filter("false")).agg(users=distinct("user")))
    assert [HLL.from_bytes(image).estimate() for image in nothing["users"].to_pylist()] == [0.0]

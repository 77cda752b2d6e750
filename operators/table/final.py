"""Whether a table of windows is final, or more rows may follow for them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ..definition.aggregate import METADATA


def is_final(table: pa.Table) -> bool | None:
    """Whether a table that a run gave out holds only windows that get no more rows.

    A window is final when all partitions' event time has passed its end by the stream's delay. One that
    silence alone has closed is not, and neither is one that was given out at a checkpoint while it filled
    (``emit="both"``): if rows follow, it comes again, whole. None of a table that doesn't say, as of one that
    was merged, or comes from Spark, where each window is given out once.

    >>> from streamgauge import Stream, StreamTester, count
    >>> import polars as pl
    >>> rows = Stream.from_batches({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> tester = StreamTester(rows.tumbling("1m").agg(n=count()))
    >>> _ = tester.feed([{"at": 1_767_225_600}])
    >>> is_final(tester.advance(70).tables())     # in the silence more rows may be on their way
    False
    >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (1, 70)])
    >>> is_final(tester.tables())
    True
    """
    return _about(table.schema).get("final")


def with_final(table: pa.Table, final: bool) -> pa.Table:
    """The table with that said in its schema's metadata."""
    metadata = {
        **(table.schema.metadata or {}),
        METADATA: json.dumps({**_about(table.schema), "final": final}),
    }
    return table.replace_schema_metadata(metadata)


def _about(schema: pa.Schema) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    return found

"""Parts of windows by count, as one worker sketches them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge import StreamTester
from streamgauge.operators.definition.aggregates import count, first
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.steps.row_origin import RowOrigin
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

LISTS = Stream.from_schema({"at": pl.Int64, "tags": pl.List(pl.String)}, time=pl.from_epoch("at", "us"))
TAGS = LISTS.explode("tags").group_by("tags")


def test_a_part_says_how_far_its_window_is_and_the_next_table_goes_on() -> None:
    sketcher = Sketcher(TAGS.count_window(3).agg(n=count()))

    def parts(low: int, tags: list[list[str]]) -> list[tuple[object, ...]]:
        frame = pl.DataFrame({"at": range(low, low + len(tags)), "tags": tags}, schema=LISTS.source.schema)
        sketcher.add(frame, PartitionTime(), place=RowOrigin(0, np.arange(low, low + len(tags))))
        names = ["tags", "streamgauge_begun", "streamgauge_upto", "n"]
        result = sketcher.drain().select(names).to_pylist()
        return sorted(
            (row["tags"], divmod(row["streamgauge_begun"], 1 << 20), row["streamgauge_upto"], row["n"])
            for row in result
        )

    assert parts(0, [["a", "b"], ["a"]]) == [("a", (0, 0), 2, 2), ("b", (0, 1), 1, 1)]
    before = sketcher.kept_bytes
    assert parts(2, [["a", "a", "b"], ["a"]]) == [
        ("a", (0, 0), 3, 1),
        ("a", (2, 1), 2, 2),
        ("b", (0, 1), 2, 1),
    ]
    assert parts(4, [["b"], ["a"]]) == [("a", (2, 1), 3, 1), ("b", (0, 1), 3, 1)]
    assert sketcher.kept_bytes == before > 0 and len(sketcher) == 0
    assert sketcher.drain().num_rows == 0


def test_rows_of_one_message_may_be_in_several_windows_of_their_own() -> None:
    tester = StreamTester(TAGS.count_window(2).agg(n=count(), at=first("at")))
    account = tester.feed([{"at": 5, "tags": ["x"] * 7}])
    assert account.counted == account.read == 1
    windows = tester.windows()
    assert windows["window_id"].to_list() == ["input[0]:0", "input[0]:0.2", "input[0]:0.4"]
    assert windows["n"].to_list() == [2, 2, 2]
    rest = tester.finish().windows()
    assert rest.select("window_id", "n").rows() == [("input[0]:0.6", 1)]


def test_streams_that_windows_by_count_are_not_for_are_refused() -> None:
    with pytest.raises(ValueError, match=r"has deduplicate\(\).*windows of time"):
        LISTS.deduplicate("at", within="1m").count_window(3)
    with pytest.raises(ValueError, match="rows must be an integer ≥ 1, got 0"):
        LISTS.count_window(0)
    with pytest.raises(TypeError, match="rows must be an integer, as in"):
        LISTS.count_window("3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="windows of 3 rows already"):
        LISTS.count_window(3).tumbling("1m")
    with pytest.raises(ValueError, match='"window_id" is the key'):
        LISTS.count_window(3).agg(window_id=count())

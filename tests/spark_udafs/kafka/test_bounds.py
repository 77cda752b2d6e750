"""Which of the options that say where to begin and end counts, and what is refused."""

from __future__ import annotations

import pytest

from streamgauge.spark_udafs.kafka.bounds import Since, check_bounded, check_order, ending, starting

EACH = {"posts": {"0": 5, "1": 7}}


def test_the_first_of_timestamp_timestamps_and_offsets_counts() -> None:
    given = {
        "startingtimestamp": "12",
        "startingoffsetsbytimestamp": '{"posts":{"0":5,"1":7}}',
        "startingoffsets": "earliest",
        "startingoffsetsbytimestampstrategy": "LATEST",
    }
    assert starting(given) == Since("startingTimestamp", 12, or_end=True)
    del given["startingtimestamp"]
    assert starting(given) == Since("startingOffsetsByTimestamp", EACH, or_end=True)
    del given["startingoffsetsbytimestamp"]
    assert starting(given) == "earliest"
    assert starting({}) is None


def test_an_end_that_no_message_has_reached_is_the_latest() -> None:
    assert ending({"endingtimestamp": "12"}) == Since("endingTimestamp", 12, or_end=True)
    assert ending({"endingoffsets": '{"posts":{"0":-1}}'}) == {"posts": {"0": -1}}


def test_a_bounded_read_neither_begins_at_the_end_nor_ends_at_the_beginning() -> None:
    check_bounded({"posts": {"0": -2}}, {"posts": {"0": -1}})
    with pytest.raises(
        ValueError, match=r"startingOffsets gives -1 \(latest\) for posts-1; spark.read would"
    ):
        check_bounded({"posts": {"0": -2, "1": -1}}, None)
    with pytest.raises(ValueError, match=r"endingOffsets gives -2 \(earliest\) for posts-0"):
        check_bounded(None, {"posts": {"0": -2}})
    with pytest.raises(ValueError, match='endingOffsets "earliest" would read nothing'):
        check_bounded(None, "earliest")


def test_an_end_before_the_start_is_named() -> None:
    begins = {("posts", 0): 20, ("posts", 1): 0}
    with pytest.raises(ValueError, match="posts-0 would be read from offset 20 to 10: the end comes first"):
        check_order(begins, {("posts", 0): 10, ("posts", 1): 5})

"""Enough messages, or enough waiting; the rest is the class's own example."""

from __future__ import annotations

from streamgauge.spark_udafs.kafka.admission import Pace


def test_what_waits_too_long_goes_with_what_there_is_and_the_wait_begins_again() -> None:
    pace = Pace(10, 60.0)
    assert pace.enough(3, 0.0)
    assert [pace.enough(9, now) for now in (1.0, 59.9, 60.0, 61.0, 119.9, 120.0)] == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]


def test_nothing_new_is_no_micro_batch_and_doesn_t_start_the_wait() -> None:
    pace = Pace(10, 60.0)
    assert pace.enough(0, 0.0)
    assert pace.enough(1, 50.0)
    assert not pace.enough(1, 60.0)


def test_without_a_least_size_every_message_is_enough() -> None:
    pace = Pace(None, 60.0)
    assert all(pace.enough(1, now) for now in (0.0, 0.1, 0.2))

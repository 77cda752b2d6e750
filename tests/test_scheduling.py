"""Workers begin with what takes longest to set up, share no session, and help each other at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("xdist")

from .scheduling import LANES, kind_of, next_unit

TESTS = Path(__file__).parent
KINDS = {
    "spark_udafs/streaming/test_run.py": "Spark",
    "engines/test_joins.py": "Spark too",
    "operators/consumer/test_runner.py": "Kafka",
    "operators/kafka/test_reader.py": "Kafka too",
    "spark_udafs/cluster/test_cluster.py": "apart",
    "laws/test_merging.py": "law",
    "test_scheduling.py": "pure",
}


def test_kinds_are_known_by_the_marks_of_a_file() -> None:
    assert {name: kind_of(TESTS / name) for name in KINDS} == KINDS
    assert all({*lane} >= {*KINDS.values()} for lane in LANES)


def test_each_worker_takes_its_own_kinds_first_and_then_what_is_left() -> None:
    units = [f"{kind}: {number}" for kind in reversed(KINDS.values()) for number in range(2)]
    taken = []
    for worker in (0, 1, 2, 5):
        left, order = [*units], list[str]()
        while left:
            order.append(next_unit(worker, left))
            left.remove(order[-1])
        taken.append([unit.split(":")[0] for unit in order[::2]])
        assert sorted(order) == sorted(units)
    assert [order[0] for order in taken] == ["Spark", "Spark too", "apart", "apart"]
    assert [order[-1] for order in taken] == ["pure", "pure", "Spark", "Spark"]

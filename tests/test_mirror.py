"""Tests mirror the folders: what a room promises is proved in the room of the same name under `tests`.

`tests/laws` hold every family of sketches and samples to the same laws, whose proof they are in rooms without
tests of their own; ``tests/engines`` is about what Spark and the consumer must give alike, ``tests/faults``
about what no fault may change.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps"]
BY_LAWS = {"sampling/decayed_quantiles", "sampling/hash_sample"}
"""Rooms that the laws prove, which run on every family."""

BY_THE_WHOLE = {
    "sketches/stored/classic_quantiles",
    "apps/supernova/cuts",
}
"""Rooms that the tests of the room above prove."""


def rooms() -> list[str]:
    """The folders that hold modules."""
    folders = {
        path.parent for floor in FLOORS for path in (ROOT / floor).rglob("*.py") if path.name != "__init__.py"
    }
    return sorted(str(folder.relative_to(ROOT)) for folder in folders)


def test_a_room_has_its_tests_under_its_own_name() -> None:
    without = {room for room in rooms() if not any((TESTS / room).glob("test_*.py"))}
    assert without == BY_LAWS | BY_THE_WHOLE


def test_a_room_of_tests_is_of_a_room_of_the_house() -> None:
    free = {"engines", "faults", "laws", "oracles"}
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    folders -= {Path(), Path("spark_udafs/cluster")}  # of the whole floor, on a cluster
    assert [str(one) for one in folders if one.parts[0] not in free and not (ROOT / one).is_dir()] == []

"""What there is to compile."""

from __future__ import annotations

import pytest

from streamgauge.operators.families import FAMILIES
from streamgauge.operators.warm_up.steps import COLUMNS, READING, accepts, exercise, steps


def test_all_families_and_the_way_from_kafka_are_steps() -> None:
    assert {step.name for step in steps()} == {*FAMILIES, READING}


def test_each_family_takes_one_of_the_columns() -> None:
    for family in FAMILIES.values():
        assert any(accepts(family, column.type) for column in COLUMNS.values()), family.name


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(KeyError, match=r"'distict'; there are distinct, "):
        steps(["count", "distict"])


@pytest.mark.parametrize("name", ["distinct", "sum"])
def test_what_was_exercised_compiles_nothing_more(name: str) -> None:
    from streamgauge.sketches.core.compilation.kernel_cache import only_kept

    exercise(name)
    with only_kept():
        exercise(name)

"""Equal are sketches of one family, of the same parameters and the same bytes; none can be hashed."""

from __future__ import annotations

from typing import Any

import pytest

from .families import CASES, FAMILIES, IDS, Family, sized
from .family import each_family
from .streams import fresh

ANOTHER = {
    "lg_k": 8,
    "relative_accuracy": 0.05,
    "k": 32,
    "max_size": 32,
    "eps": 0.1,
    "confidence": 0.5,
    "seed": 3,
    "capacity": 30,
    "fpp": 0.2,
    "window": 60.0,
    "half_life": 60.0,
    "p": 0.5,
    "high_ranks": False,
    "kind": "integer",
    "mode": "min",
}
"""For each parameter a value that no default is."""


def unequal(one: Any, other: Any) -> bool:
    """Whether both operators, either way round, say so."""
    return one != other and other != one and not one == other and not other == one  # noqa: SIM201


@each_family(("family", "kind", "size"), sized([0, 1, 5000]), ids=str)
def test_round_trips_and_copies_are_equal(family: Family, kind: str, size: int) -> None:
    sketch = family.feed(family.new(kind), fresh(kind, 1, size))
    for same in (family.read(sketch.to_bytes(), kind), sketch.copy(), sketch):
        assert same == sketch and sketch == same and not same != sketch  # noqa: SIM202
    with pytest.raises(TypeError, match="unhashable"):
        hash(sketch)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_other_data_is_unequal(family: Family, kind: str) -> None:
    sketch = family.feed(family.new(kind), fresh(kind, 1, 3000))
    assert unequal(sketch, family.feed(family.new(kind), fresh(kind, 2, 2000)))
    changed = sketch.copy()
    assert unequal(sketch, family.feed(changed, fresh(kind, 3, 2000), 3000))


PARAMETERS = [
    pytest.param(family, name, id=f"{family}-{name}") for family in FAMILIES for name in family.line.params
]


@each_family(("family", "name"), PARAMETERS)
def test_other_parameters_are_unequal(family: Family, name: str) -> None:
    assert unequal(family.single(), family.single(**{name: ANOTHER[name]}))


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_another_kind_of_item_is_unequal(family: Family) -> None:
    made = [family.single(kind=kind) for kind in family.line.aggregate.kinds]
    assert all(unequal(one, other) for at, one in enumerate(made) for other in made[:at])


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_stranger_is_unequal(family: Family) -> None:
    strangers = [other.single() for other in FAMILIES if other is not family]
    assert all(unequal(family.single(), other) for other in [*strangers, None, b"", "text"])

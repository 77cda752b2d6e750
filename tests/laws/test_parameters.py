"""Every family's parameters, checked alike: what is out of range or of another type is refused by name."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

from streamgauge.operators.families import FAMILIES, Family
from streamgauge.sketches.core.protocol import SketchError

SKETCHES = [family for family in FAMILIES.values() if not family.exact]
WRONG = {
    int: (-1, True, 1.5, math.nan, "7", None, [8], 10**30),
    float: (-0.5, 0.0, True, math.nan, math.inf, "0.1", None, [0.1], 10**30),
    str: ("no such", "", 3, None, True, ["double"]),
    bool: (1, 0.0, None, "yes"),
}
MAY_BE_NONE = {"seed": int, "lg_k": int, "kind": str}
"""Parameters that are None where nothing is said, and what they are else."""
SIGNED = ("seed",)


def parameters(kind: Any) -> list[tuple[str, Any]]:
    """The parameters of a constructor with their defaults."""
    result = inspect.signature(kind.__init__).parameters.values()
    return [(one.name, one.default) for one in result if one.default is not inspect.Parameter.empty]


def wrong_for(name: str, default: Any) -> list[Any]:
    sort = MAY_BE_NONE[name] if default is None else type(default)
    free = default is None or name == "lg_k"  # a Tuple may leave its lg_k open
    wrong = [value for value in WRONG[sort] if not (value is None and free)]
    wrong += [float(default)] if sort is int and default is not None else []
    return [value for value in wrong if not (value == -1 and name in SIGNED)]


@pytest.mark.parametrize("family", SKETCHES, ids=lambda family: family.name)
def test_wrong_parameters_are_refused_by_name(family: Family) -> None:
    single, groups = family.sketch_class(), family.groups_class()
    tried = 0
    for name, default in parameters(single):
        for value in wrong_for(name, default):
            for made in (lambda given: single(**given), lambda given: groups(0, **given)):
                with pytest.raises((SketchError, TypeError), match=name):
                    made({name: value})
                    pytest.fail(f"{family.name}({name}={value!r}) was accepted")
                tried += 1
    assert tried > 8


@pytest.mark.parametrize("family", SKETCHES, ids=lambda family: family.name)
def test_numpys_numbers_are_numbers(family: Family) -> None:
    given = {
        name: np.int32(default) if type(default) is int else np.float64(default)
        for name, default in parameters(family.sketch_class())
        if type(default) in (int, float)
    }
    made = family.sketch_class()(**given)
    assert made.copy().to_bytes() == made.to_bytes()

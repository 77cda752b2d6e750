"""How much a sketch counts: up to its limit each image is readable, beyond it nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from .families import FAMILIES, Family
from .refusals import ERRORS
from .streams import fresh

MOST = {
    "HLL": None,
    "Theta": None,
    "Bloom": None,
    "SlidingHLL": None,
    "SlidingBloom": None,
    "CPC": None,
    "Tuple": None,
    "KLL": 2**62,
    "DDSketch": 2**62 - 1,
    "DecayedCount": 2**62 - 1,
    "DecayedQuantiles": 2**62 - 1,
    "REQ": 2**62 - 1,
    "ClassicQuantiles": 2**47 - 1,
    "VarOpt": 2**48 - 1,
    "TDigest": 2**53 - 1,
}
"""The most values that a family counts: what its class says, 2^63 − 1 where it says nothing, None if none."""
PARAMS: dict[str, list[dict[str, Any]]] = {
    # A sample of a share of all rows is limited by memory: this one has none of them.
    "BernoulliSample": [{"p": 1e-12}],
    "HashSample": [{"p": 1e-12}],
    "KLL": [{"k": 8}, {"k": 200}, {"k": 4800}],
}
SHARES = (0.0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1.0)


def count_of(sketch: Any) -> int | None:
    return next((getattr(sketch, name) for name in ("n", "weight", "total") if hasattr(sketch, name)), None)


def attempt(sketch: Any, change: Any, fits: bool, step: str) -> Iterator[str]:
    """What is wrong with a change that fits, or doesn't and must leave all as it is."""
    before = sketch.to_bytes()
    try:
        change()
    except ERRORS as error:
        if fits:
            yield f"{step}: refused: {error}"
        elif sketch.to_bytes() != before:
            yield f"{step}: refused, but changed: {error}"
    else:
        if not fits:
            yield f"{step}: not refused, now {count_of(sketch)}"


def answers(family: Family, kind: str, sketch: Any, step: str) -> Iterator[str]:
    """What is wrong with the image of a sketch and with what it says."""
    image = sketch.to_bytes()
    read = family.read(image, kind)
    if read.to_bytes() != image or count_of(read) != count_of(sketch):
        yield f"{step}: read back as {count_of(read)} instead of {count_of(sketch)}"
    if str(read.answer()) != str(sketch.answer()):
        yield f"{step}: answers {read.answer()} instead of {sketch.answer()}"
    repr(sketch)
    if hasattr(sketch, "quantiles"):
        values = sketch.quantiles(SHARES)
        if values != sorted(values) or (values[0], values[-1]) != tuple(sketch.quantiles([0.0, 1.0])):
            yield f"{step}: quantiles {values}"
        if family.name == "KLL" and (values[0], values[-1]) != (sketch.low, sketch.high):
            yield f"{step}: the ends are {sketch.low} and {sketch.high}, the quantiles {values}"


def doubled(family: Family, kind: str, size: int, params: dict[str, Any]) -> list[str]:
    """What goes wrong while a sketch is merged with itself and gets one row more, time and again."""
    sketch = family.single(**{**family._params(kind, 1, None), **params})
    family.feed(sketch, fresh(kind, 1, size))
    count, most, wrong = size, MOST.get(family.name, 2**63 - 1), []
    row = fresh(kind, 2, 1)
    for i in range(66):
        step = f"{family} of {size}, {params}, step {i}"
        merges = most is None or 2 * count <= most
        wrong += attempt(sketch, lambda: sketch.merge(sketch), merges, f"{step}, merged")
        count = 2 * count if merges else count
        adds = most is None or count + 1 <= most
        wrong += attempt(sketch, lambda: family.feed(sketch, row), adds, f"{step}, updated")
        count += adds
        if family.name == "DDSketch":  # its counts are doubles, as in the published bytes
            wrong += [step] * (abs(count_of(sketch) - count) > 1e-15 * count)
            count = count_of(sketch)
        elif most is not None and count_of(sketch) != count:
            wrong.append(f"{step}: counted {count_of(sketch)} instead of {count}")
        wrong += answers(family, kind, sketch, step)
        if wrong or not (merges or adds):
            break
    if most is not None and not wrong:
        wrong += in_groups(family, kind, sketch, params)
    return wrong


def in_groups(family: Family, kind: str, sketch: Any, params: dict[str, Any]) -> list[str]:
    """What goes wrong where one of many sketches can't take another in."""
    groups = family.groups(2, **{**family._params(kind, 1, None), **params})
    half = family.feed(family.single(**{**family._params(kind, 1, None), **params}), fresh(kind, 1, 3))
    images = pa.array([half.to_bytes(), sketch.to_bytes()], pa.binary())
    try:
        groups.merge(np.array([1, 0]), images)
    except OverflowError:  # what one of many counts may be less
        return [] if family.name == "CountMin" else [f"{family}: many don't take what one has counted"]
    before = groups.to_arrow()
    try:
        groups.merge(np.array([1, 0]), images)
    except ERRORS:
        return [] if groups.to_arrow() == before else [f"{family}: many refused, but changed"]
    return [f"{family}: many did not refuse"]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_doubled_up_to_the_limit(family: Family) -> None:
    kind, wrong = family.kinds[0], []
    for params in PARAMS.get(family.name, [{}]):
        for size in (1, 700):
            wrong += doubled(family, kind, size, params)
    assert not wrong

"""The promised bound over many seeds: kept as often as promised, and not promised hugely too loose."""

from __future__ import annotations

import numpy as np

from .families import CASES, IDS, WHOLE, Family
from .family import each_family
from .streams import fresh

SEEDS, CERTAIN = (60, 15) if WHOLE else (15, 6)
"""A promise that may fail now and then needs many, which `make soak` takes; any other fails on the first."""
SIZES = (300, 3000, 20_000)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_the_bound_is_kept_and_not_hugely_loose(family: Family, kind: str) -> None:
    errors, seeds = [], SEEDS if family.confidence < 1.0 else CERTAIN
    for seed in range(seeds):
        column = fresh(kind, seed, SIZES[seed % 3] if family.confidence < 1.0 else 500 + 170 * seed)
        sketch = family.feed(family.new(kind, seed), column)
        errors.append(family.promise(sketch, column.to_pylist()))
    missed = sum(error > 1.0 for error in errors)
    expected = seeds * (1.0 - family.confidence)
    assert missed <= expected + 3.5 * np.sqrt(expected) + (0 if family.confidence == 1.0 else 0.5)
    assert max(errors) >= family.loose


@each_family(("family", "kind"), CASES, ids=IDS)
def test_the_bound_is_kept_by_merged_parts(family: Family, kind: str) -> None:
    errors = []
    for seed in range(20 if WHOLE else 6):
        column = fresh(kind, seed, 6000 if family.confidence < 1.0 else 1500)
        whole, start = family.new(kind, 10 * seed), 0
        for part, length in enumerate((0, 1, 400, len(column) - 401)):
            piece = family.new(kind, 10 * seed + part + 1)
            whole.merge(family.feed(piece, column.slice(start, length), start))
            start += length
        errors.append(family.promise(whole, column.to_pylist()))
    missed = sum(error > 1.0 for error in errors)
    expected = len(errors) * (1.0 - family.confidence)
    assert missed <= expected + 3.5 * np.sqrt(expected) + (0 if family.confidence == 1.0 else 0.5)

"""Every family of the registry under the laws: how it is made and fed comes from its line.

What can't be read off the line is said here: what a family promises, and where it differs from the others.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.operators.families import Family as Line

from . import promises
from .family import Family, Promise
from .streams import TYPES

KINDS = tuple(TYPES)
COUNTED = ("long", "string")


def _weight(rows: np.ndarray) -> dict[str, Any]:
    return {"weight": 1.0 + rows % 7 * 0.7}


def _time(rows: np.ndarray) -> dict[str, Any]:
    return {"time": 1_785_000_000_000_000 + (rows * 37 % 1009) * 1_000_000}


def _value(rows: np.ndarray) -> dict[str, Any]:
    return {"value": 1.0 + rows % 7}


def _key(rows: np.ndarray) -> dict[str, Any]:
    return {"key": rows % 13}


def _coupons_or_registers(sketch: Any) -> Any:
    """What HLL knows of its values. As in DataSketches, its bytes also depend on their order.

    Coupons lie in the order they came, and the HIP estimator sums up in the order of registers' changes.
    """
    image = sketch.to_bytes()
    if len(image) > 1 << sketch.lg_k:
        return sketch.lg_k, image[40:]
    return sketch.lg_k, sorted(np.frombuffer(image[8:], np.uint32))


INPUTS = {"weight": _weight, "time": _time, "value": _value, "key": _key}


def held(promise: Promise, **said: Any) -> dict[str, Any]:
    """What a family promises, and what else it says of itself, in the words of `Family`."""
    return {"promise": promise, **said}


# Cuts change bytes where the package draws coins by the clock (classic quantiles, VarOpt), and in the
# last digits of sums where weights are not whole numbers (decayed quantiles); promises hold all the same.
SAID: dict[str, dict[str, Any]] = {
    "distinct": held(
        promises.distinct,
        params={"lg_k": 10},
        others=({"lg_k": 12}, {"lg_k": 7}),
        confidence=0.954,
        loose=0.5,
        view=_coupons_or_registers,
        depths=(0, 1, 7, 8, 25, 96, 97, 3000),
    ),
    "distinct_set": held(
        promises.distinct,
        params={},
        typed={kind: {"lg_k": 9} for kind in KINDS},
        confidence=0.954,
        loose=0.5,
        parts=True,
        depths=(0, 1, 511, 512, 513, 3000),
    ),
    "sliding_distinct": held(
        promises.distinct,
        params={"lg_k": 9, "window": 2000.0},
        confidence=0.954,
        loose=0.5,
        parts=True,
    ),
    "kll_quantiles": held(
        promises.quantiles,
        kinds=("long", "double"),
        params={"k": 64},
        others=({"k": 200}, {"k": 8}),
        confidence=0.99,
        loose=0.3,
        order=False,
        resumes=False,
        depths=(0, 1, 64, 65, 700, 15000),
    ),
    "quantiles": held(
        promises.relative_quantiles,
        kinds=("long", "double"),
        params={"relative_accuracy": 0.02},
        loose=0.3,
        parts=True,
        typed={},
    ),
    "tail_quantiles": held(
        promises.tail_ranks,
        kinds=("long", "double"),
        params={"k": 12},
        others=({"k": 24}, {"k": 4}),
        confidence=0.954,
        loose=0.3,
        order=False,
        resumes=False,
        depths=(0, 1, 4, 5, 71, 72, 300, 20_000),
    ),
    "tdigest_quantiles": held(
        promises.ends,
        kinds=("long", "double"),
        params={"k": 100},
        others=({"k": 200}, {"k": 30}),
        order=False,
        resumes=False,
        depths=(0, 1, 2, 500, 5000),
    ),
    "top_k": held(
        promises.frequencies,
        params={"max_size": 64},
        others=({"max_size": 256}, {"max_size": 8}),
        mixed=functools.partial(promises.frequencies, max_size=8),
        loose=0.2,
        order=False,
        depths=(0, 1, 6, 49, 1000),
    ),
    "frequency": held(
        promises.point_counts,
        kinds=COUNTED,
        params={"eps": 0.02, "confidence": 0.9},
        confidence=0.9,
        loose=0.1,
        parts=True,
    ),
    "membership": held(
        promises.membership,
        params={"capacity": 20000},
        confidence=0.9,
        loose=0.2,
        parts=True,
    ),
    "sliding_membership": held(
        promises.membership,
        params={"capacity": 20000, "window": 2000.0},
        confidence=0.9,
        loose=0.2,
        parts=True,
    ),
    "sample": held(
        promises.share,
        params={"k": 50},
        others=({"k": 80}, {"k": 7}),
        confidence=0.95,
        loose=0.4,
        depths=(0, 1, 50, 51, 3000),
    ),
    "weighted_sample": held(
        promises.part_of,
        params={"k": 50},
        others=({"k": 80}, {"k": 7}),
    ),
    "decayed_sample": held(
        promises.part_of,
        params={"k": 50, "half_life": 100.0},
        others=({"k": 80}, {"k": 7}),
    ),
    "decayed_count": held(
        promises.decayed_count,
        kinds=COUNTED,
        params={"half_life": 1000000000.0},
        order=False,
    ),
    "decayed_quantiles": held(
        promises.decayed_quantiles,
        kinds=("long", "double"),
        params={"half_life": 1000000000.0, "relative_accuracy": 0.02},
        loose=0.3,
        cut=False,
        order=False,
    ),
    "recent_sample": held(
        promises.part_of,
        params={"k": 20, "window": 300.0},
        others=({"k": 80}, {"k": 7}),
    ),
    "stratified_sample": held(
        promises.part_of,
        params={"k": 5, "capacity": 50},
        others=({"k": 80}, {"k": 2}),
    ),
    "bernoulli_sample": held(
        promises.part_of,
        params={"p": 0.05},
    ),
    "hash_sample": held(
        promises.part_of,
        params={"p": 0.3},
    ),
    "cpc": held(
        promises.distinct,
        params={"lg_k": 9},
        others=({"lg_k": 11}, {"lg_k": 7}),
        confidence=0.954,
        loose=0.5,
        depths=(0, 1, 48, 49, 300, 1800, 9000),
    ),
    "tuple": held(
        promises.distinct,
        kinds=COUNTED,
        params={},
        typed={kind: {"lg_k": 9} for kind in COUNTED},
        confidence=0.954,
        loose=0.5,
        parts=True,
        depths=(0, 1, 512, 513, 3000),
    ),
    "classic_quantiles": held(
        promises.double_quantiles,
        kinds=("long", "double"),
        params={"k": 64},
        others=({"k": 128}, {"k": 16}),
        confidence=0.99,
        loose=0.3,
        cut=False,
        order=False,
        repeats=False,
        depths=(0, 1, 64, 129, 2000),
    ),
    "var_opt": held(
        promises.part_of,
        params={"k": 50},
        others=({"k": 80}, {"k": 7}),
        cut=False,
        order=False,
        repeats=False,
    ),
}


def kinds_of(line: Line) -> dict[str, dict[str, Any]]:
    """The kinds of column that a family takes, each with the parameters that it decides."""
    by_key = {}
    for kind, column_type in TYPES.items():
        try:
            by_key[kind] = line.of_column(column_type)
        except TypeError:
            continue
    return by_key


def under_law(line: Line) -> Family:
    """A line of the registry under the laws; one without an entry here promises nothing."""
    typed = kinds_of(line)

    def inputs(rows: np.ndarray) -> dict[str, Any]:
        return {name: value for given in line.inputs for name, value in INPUTS[given](rows).items()}

    own: dict[str, Any] = {
        "params": dict(line.params),
        "kinds": tuple(typed),
        "typed": typed,
        "inputs": inputs,
        "seeded": line.seeded,
        "promise": promises.nothing,
    }
    said = own | SAID.get(line.name, {})
    return Family(line, line.sketch_class(), line.groups_class(), **said)


FAMILIES = [under_law(line) for line in REGISTRY.values() if not line.exact]

CASES = [(family, kind) for family in FAMILIES for kind in family.kinds]
IDS = [f"{family}-{kind}" for family, kind in CASES]
WHOLE = "STREAMGAUGE_WHOLE_LAWS" in os.environ
"""Whether laws run on all that they may, as in ``make soak``."""


def sized(values: Iterable[Any]) -> list[tuple[Family, str, Any]]:
    """Every kind of column with the last of the values, and every value with a family's first kind.

    ``make soak`` takes every kind with every value.
    """
    *others, last = values
    return [
        (family, kind, value)
        for family, kind in CASES
        for value in ([*others, last] if WHOLE or kind == family.kinds[0] else [last])
    ]

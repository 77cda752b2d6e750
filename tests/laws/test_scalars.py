"""One value is one value, whatever its type: as a parameter, as what every row has, as what a row has."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.core.parameters import seconds
from streamgauge.sketches.core.protocol import SketchError

from .families import FAMILIES, Family
from .test_parameters import parameters

INPUTS: dict[str, list[Any]] = {
    "time": [1_785_000_000_000_000, pd.Timestamp("2026-07-01"), np.int64(5), np.datetime64(17, "100ms")],
    "weight": [2, np.uint8(2), pa.scalar(2), np.array(2)],
    "value": [2.5, np.float32(2.5), pa.scalar(2.5), np.array(2.5)],
    "key": ["ann", np.str_("ann"), pa.scalar("ann")],
}
"""What may stand for all rows."""
WEIGHED = {"FrequentItems": ("weight",), "CountMin": ("weight",)}
"""Inputs that a family takes and doesn't need."""
DEVIATIONS: tuple[Any, ...] = (2.0, True, np.float64(2), np.True_, "2", None, [2], 0, 4, -1)


def values_for(family: Family) -> list[Any]:
    return {"long": [7, 8, 9], "double": [7.5, 8.5, 9.5], "string": ["a", "b", "c"]}[family.kinds[0]]


def ways(family: Family) -> Iterator[tuple[Callable[..., bytes], str]]:
    """How rows with one further input become bytes, alone and in groups, for each input."""
    kind = family.kinds[0]
    for name in (*family.line.inputs, *WEIGHED.get(family.name, ())):

        def single(values: Any, given: Any, name: str = name) -> bytes:
            return bytes(family.new(kind).update(values, **{name: given}).to_bytes())

        def group(values: Any, given: Any, name: str = name) -> bytes:
            groups = family.many(2, kind)
            groups.update(np.ones(len(values), np.int64), values, **{name: given})
            return bytes(groups[1].to_bytes())

        yield from ((single, name), (group, name))


def test_a_scalar_is_that_of_all_rows_and_a_list_has_one_for_each() -> None:
    wrong, tried = [], 0
    for family in FAMILIES:
        values = values_for(family)
        for way, name in ways(family):
            for given in INPUTS[name]:
                tried += 1
                case = f"{family}, {way.__name__}, {name}={given!r}"
                if way(values, given) != way(values, [given] * 3):
                    wrong.append(f"{case}: not that of all rows")
                if way(values[:1], [given]) != way(values[:1], given):
                    wrong.append(f"{case}: a list of one is not one row's")
                try:
                    way(values, [given])
                    wrong.append(f"{case}: a list of one stood for three rows")
                except ValueError as error:
                    if "3 in all, got" not in str(error):
                        wrong.append(f"{case}: {error}")
    assert not wrong, "\n".join(wrong)
    assert tried > 60


@pytest.mark.parametrize("name", ["first", "last"])
def test_times_of_exact_aggregates_are_one_a_row(name: str) -> None:
    groups: Any = REGISTRY[name].groups_class()(1)
    with pytest.raises(ValueError, match="expected one time a row, 2 in all, got 1"):
        groups.update([0, 0], ["a", "b"], time=[5])
    groups.update([0], ["a"], time=[5])
    groups.update([0, 0], ["b", "b"], time=5)
    assert groups[0] in ("a", "b")


@pytest.mark.slow
def test_numpys_numbers_make_the_same_sketch() -> None:
    """Down to what pickles, copies and images of it say, in every type that holds the number."""
    wrong, tried = [], 0
    for family in FAMILIES:
        for many in (False, True):
            made = family.groups if many else family.single
            for name, default in parameters(family.single):
                number = 7 if name == "seed" else default
                if type(number) not in (int, float):
                    continue
                kinds = (np.float64, np.array) if type(number) is float else (*INTEGERS, np.array)
                for kind in kinds:
                    if kind is not np.array and type(number) is int and number > np.iinfo(kind).max:
                        continue
                    plain, same = made(**{name: number}), made(**{name: kind(number)})
                    tried += 1
                    try:
                        if state_of(plain) != state_of(same):
                            wrong.append(f"{family}, {name}={kind(number)!r}")
                    except Exception as error:
                        wrong.append(f"{family}, {name}={kind(number)!r}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert tried > 200


INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


def state_of(sketch: Any) -> Any:
    """What two equal sketches have in common; raises if one isn't of Python's own numbers."""
    if hasattr(sketch, "to_arrow"):
        sketch.resize(2)
        return sketch.to_arrow().to_pylist(), pickle.loads(pickle.dumps(sketch)).to_arrow().to_pylist()
    numbers = {
        name: getattr(sketch, name)
        for name in ("seed", "k", "lg_k", "capacity", "fpp", "max_size")
        if hasattr(sketch, name)
    }
    assert all(type(number) in (int, float) for number in numbers.values()), numbers
    return repr(sketch), sketch.to_bytes(), pickle.loads(pickle.dumps(sketch)).to_bytes(), numbers


def test_numpys_numbers_describe_the_same_aggregate() -> None:
    for plain, same in (
        (sg.frequency("page", seed=7), sg.frequency("page", seed=np.int32(7))),  # type: ignore[arg-type]
        (sg.sample("page", k=7), sg.sample("page", k=np.uint8(7))),  # type: ignore[arg-type]
        (sg.top_k("page", k=7), sg.top_k("page", k=np.int64(7))),  # type: ignore[arg-type]
        (sg.recent_sample("page", window=90.0), sg.recent_sample("page", window=timedelta(seconds=90))),  # type: ignore[arg-type]
    ):
        assert plain.to_json() == same.to_json()
        assert sg.Aggregate.from_json(same.to_json()) == plain


def test_lengths_of_time_in_numpys_type() -> None:
    assert seconds("HLL", "window", np.timedelta64(1500, "ms")) == 1.5
    for wrong in (np.timedelta64(3), np.timedelta64(1, "M"), np.timedelta64("NaT", "s")):
        with pytest.raises(SketchError, match="window must be a timedelta or seconds"):
            seconds("HLL", "window", wrong)


def test_bounds_are_of_one_two_or_three_deviations() -> None:
    wrong, tried = [], 0
    for family in FAMILIES:
        kind = family.kinds[0]
        single, many = family.new(kind), family.many(1, kind)
        family.feed(single, values_for(family))
        family.feed_groups(many, np.zeros(3, np.int64), values_for(family))
        for sketch in (single, many):
            for name, method in inspect.getmembers(type(sketch), inspect.isfunction):
                if name.startswith("_") or "std_devs" not in inspect.signature(method).parameters:
                    continue
                tried += 1
                needed = {"x": values_for(family)[0]} if name == "rank_bounds" else {}
                ask = getattr(sketch, name)
                for two in (np.int8(2), np.uint64(2), np.array(2)):
                    if repr(ask(**needed, std_devs=two)) != repr(ask(**needed, std_devs=2)):
                        wrong.append(f"{family}.{name}({two!r})")
                for given in DEVIATIONS:
                    try:
                        ask(**needed, std_devs=given)
                        wrong.append(f"{family}.{name}({given!r}) was accepted")
                    except SketchError as error:
                        if "1, 2 or 3 standard deviations" not in str(error):
                            wrong.append(f"{family}.{name}({given!r}): {error}")
    assert not wrong, "\n".join(wrong)
    assert tried >= 10

"""Whatever an argument is, a public method answers what it means in plain Python, or refuses it in our words.

Every public method of every public class of sketches and samples, with every argument of `odd_arguments` for
each of its parameters. An error is ours if a line of this package raises it and it names the argument. A
refused call, and a question, change nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamgauge
from streamgauge import HeavyHitters
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.core.protocol import Groups, Sketch

from .families import FAMILIES, INPUTS, WHOLE, Family
from .odd_arguments import (
    EITHER,
    REFUSED,
    ROWS,
    TABLE,
    Maybe,
    Odd,
    bytes_like,
    columns_of_images,
    each_of,
    inputs_of,
    item_like,
    rows_of,
    values_like,
)

ROOT = Path(streamgauge.__file__).parent
ENGINE = frozenset(
    (
        "add",
        "fold",
        "image",
        "make_room",
        "merge_columns",
        "refused",
        "shares",
        "union_limits",
        "update_ordered",
    )
)
"""Methods that only this package calls, with arrays that it made."""
WORDS = {
    "qs": "share",
    "q": "share",
    "x": "rank",
    "groups": "group",
    "group": "group",
    "data": "",
    "n": "n must",
    "values": "",
    "value": "",
    "item": "",
    "column": "",
    "other": "",
}
"""What names a parameter in errors, where its own name doesn't; values are named by their types."""
OPERATORS = ("__getitem__", "__contains__", "__or__", "__and__", "__sub__")


@functools.cache
def raising_lines(path: str) -> frozenset[int]:
    """The lines of a file on which a `raise` statement stands."""
    tree = ast.parse(Path(path).read_text())
    raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return frozenset(line for node in raises for line in range(node.lineno, (node.end_lineno or 0) + 1))


def fault_of(error: BaseException, parameter: str) -> str:
    """What is wrong with an error; empty if it is one of ours and names the argument."""
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    assert last
    path = last.tb_frame.f_code.co_filename
    shown = f"{type(error).__name__}: {str(error)[:150]}"
    at = f"{Path(path).name}:{last.tb_lineno}"
    if not isinstance(error, (TypeError, ValueError, IndexError, OverflowError)) or isinstance(
        error, pa.ArrowException
    ):
        return f"{shown} (at {at})"
    if not path.startswith(str(ROOT)) or last.tb_lineno not in raising_lines(path):
        return f"not ours, at {at}: {shown}"
    word = WORDS.get(parameter, parameter)
    if len(str(error)) < 15 or word not in str(error) or "\n" in str(error):
        return f"doesn't name it, in one line: {shown}"
    return ""


def state_of(one: Any) -> Any:
    """What must not change, or be equal."""
    if isinstance(one, Groups):
        return one.to_arrow()
    if isinstance(one, HeavyHitters):
        return one.counts.to_bytes(), one.top(), one.missed
    return one.to_bytes()


def alike(one: Any, other: Any) -> bool:
    """Whether two answers are the same."""
    if isinstance(one, (Sketch, Groups, HeavyHitters)):
        return bool(state_of(one) == state_of(other))
    if isinstance(one, (pa.Array, pa.Table)):
        return bool(one.equals(other))
    if isinstance(one, (list, tuple, np.ndarray)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(list(one.items()), list(other.items()))
    both_nan = isinstance(one, float) and math.isnan(one) and isinstance(other, float) and math.isnan(other)
    return both_nan or bool(one == other)


class Subject:
    """One class with the arguments that its methods usually get."""

    def __init__(self, name: str, make: Callable[[], Any], usual: dict[str, Any]) -> None:
        self.name, self.make, self.usual = name, make, usual
        self.kind = type(make())

    def table(self, parameter: str) -> list[Odd]:
        """The odd arguments for a parameter."""
        usual = self.usual.get(parameter)
        if parameter == "values":
            return values_like(usual)
        if parameter == "groups":
            return rows_of(usual)
        if parameter == "data":
            return [*TABLE["data"], *bytes_like(usual)]
        if parameter == "column":
            if isinstance(usual, list):
                return columns_of_images(usual)
            return [(given, EITHER) for given, _ in values_like([7, 8, 9])]
        if parameter in ("item", "value") and not isinstance(usual, list):
            return item_like(usual)
        if parameter in ("weight", "time", "value", "key", "partition", "offset"):
            return inputs_of(parameter)
        return TABLE.get(parameter, [])

    def calls(self) -> Iterator[tuple[str, str, Callable[..., Any]]]:
        """Each method with each parameter: a function of the subject and its argument."""
        for parameter in {"n", "type"} & {*inspect.signature(self.kind).parameters}:
            yield "__init__", parameter, lambda _, given, named=parameter: self.kind(**{named: given})
        for name, method in inspect.getmembers(self.kind, callable):
            if (name.startswith("_") and name not in OPERATORS) or name in ENGINE:
                continue
            if name in OPERATORS and name not in dir(Groups) + dir(Sketch) + [
                "__contains__",
                "__and__",
                "__sub__",
            ]:
                continue
            signature = inspect.signature(method).parameters
            names = [one for one in signature if one not in ("self", "question", "args", "inputs", "params")]
            needed = [one for one in names if signature[one].default is inspect.Parameter.empty]
            for parameter in names:
                yield name, parameter, functools.partial(self.call, name, names, needed, parameter)

    def call(
        self, name: str, names: list[str], needed: list[str], parameter: str, to: Any, given: Any
    ) -> Any:
        row_wise = {"update", "delete", "admit"} & {name}
        said = {
            one: self.usual[one]
            for one in names
            if one != parameter and (one in needed or (row_wise and one in self.usual))
        }
        said[parameter] = given
        if name == "from_bytes" and "kind" in names and parameter != "kind" and "kind" in self.usual:
            said["kind"] = self.usual["kind"]
        if name in OPERATORS:
            return getattr(to, name)(given)
        return getattr(to, name)(**said)


def difference(
    came: Any, after: Any, meaning: Any, subject: Subject, call: Callable[..., Any], means: dict[str, Any]
) -> str:
    """How an answer, and what the sketch is after it, differ from those for what the argument means."""
    meaning = meaning.meaning if isinstance(meaning, Maybe) else meaning
    key = repr(meaning)
    if key not in means:
        plain = subject.make()
        means[key] = call(plain, meaning), state_of(plain)
    expected, then = means[key]
    if alike(after, then) and alike(came, expected):
        return ""
    return f"{came}, not {expected} as for {meaning!r}"


TYPED = frozenset(("values", "value", "item", "data", "column", "other", "x", "points", "belongs", "kind"))
"""Parameters whose arguments depend on the kind of column."""


def faults(subject: Subject, typed_alone: bool = False) -> tuple[list[str], int]:
    """What is wrong with a class, or with its typed parameters alone, and how many calls were made."""
    wrong: list[str] = []
    tried = 0
    pristine = subject.make()
    before = state_of(pristine)
    for name, parameter, call in subject.calls():
        if typed_alone and parameter not in TYPED:
            continue
        means: dict[str, Any] = {}
        table = subject.table(parameter)
        if not table:
            wrong.append(f"{subject.name}.{name}: no odd arguments for {parameter}; add them to `TABLE`")
        for given, meaning, shown in each_of(table):
            tried += 1
            case = f"{subject.name}.{name}({parameter}={shown})"
            came: Any = None
            error: BaseException | None = None
            try:
                came = call(pristine, given)
            except BaseException as raised:
                error = raised
            after = state_of(pristine)
            if came is NotImplemented:
                continue
            if error is not None:
                fault = fault_of(error, parameter)
                if meaning is not REFUSED and meaning is not EITHER and not isinstance(meaning, Maybe):
                    fault = f"was refused: {type(error).__name__}: {str(error)[:120]}"
                elif not fault and not alike(after, before):
                    fault = "refused, and yet changed"
            elif meaning is REFUSED:
                fault = f"was accepted: {str(came)[:80]}"
            else:
                fault = "" if meaning is EITHER else difference(came, after, meaning, subject, call, means)
            if fault:
                wrong.append(f"{case}: {fault}")
            if not alike(after, before):
                pristine = subject.make()
    return wrong, tried


NUMBERS = np.array([0, 1, 0])


def subjects_of(family: Family, kind: str) -> Iterator[Subject]:
    """One sketch of a family, and groups."""
    values: list[Any] = {"long": [7, 8, 9], "double": [7.5, 8.5, 9.5], "string": ["a", "b", "c"]}[kind]
    inputs = {name: np.asarray(INPUTS[name](np.arange(1, ROWS + 1))[name]) for name in family.line.inputs}
    inputs = {name: given.tolist() for name, given in inputs.items()}
    if "key" in inputs:
        inputs["key"] = ["a", "b", "a"]

    if hasattr(family.single, "delete"):
        inputs["weight"] = [10] * ROWS  # to be taken back

    def single() -> Any:
        return family.new(kind).update(values, **inputs)

    def many() -> Any:
        groups = family.many(2, kind)
        for numbers in (NUMBERS, 1 - NUMBERS):
            groups.update(numbers, values, **inputs)
        return groups

    images = [single().to_bytes()] * ROWS
    usual = {
        "values": values,
        "item": values[0],
        "value": values[0],
        "data": images[0],
        "qs": [0.5],
        "q": 0.5,
    }
    usual |= {"x": 8.5, "points": [7.25, 8.5], "other": single(), **inputs}
    usual |= {"belongs": bool, **family.typed.get(kind, {})}
    if not family.line.aggregate.kinds:
        usual.pop("kind", None)
    yield Subject(f"{family.name} of {kind}", single, usual)
    of_groups = {"groups": NUMBERS.tolist(), "values": values, "column": images, "n": 5, "group": 0, **inputs}
    yield Subject(f"{family.name}Groups of {kind}", many, of_groups)


def exact_subjects() -> Iterator[Subject]:
    """Groups of the exact aggregates, of columns that they take."""
    for line in REGISTRY.values():
        if not line.exact:
            continue
        inputs = {name: [5, 6, 7] for name in line.inputs}
        for values in ([7, 8, 9], [7.5, 8.5, 9.5], ["a", "b", "c"]):

            def many(line: Any = line, values: Any = values, inputs: Any = inputs) -> Any:
                groups = line.groups_class()(2)
                groups.update(NUMBERS, values, **inputs)
                return groups

            try:
                many()
            except TypeError:
                continue
            usual = {"groups": NUMBERS.tolist(), "values": values, "n": 5, "group": 0, **inputs}
            usual["column"] = many().to_arrow().take(pa.array(NUMBERS))
            yield Subject(f"{line.name} of {type(values[0]).__name__}", many, usual)


def hitters() -> Subject:
    """The heavy hitters, which stand on a sketch of the registry."""
    return Subject(
        "HeavyHitters",
        lambda: HeavyHitters(k=2, eps=0.01).update(["a", "b", "c"], weight=[10, 10, 10]),
        {"values": ["a", "b", "c"], "weight": [10, 10, 10]},
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_an_argument_means_what_it_does_in_python_or_is_refused_in_our_words(family: Family) -> None:
    wrong, tried = [], 0
    first = family.kinds[0]
    for kind in (first, *({"string"} & {*family.kinds[1:]})):
        for subject in subjects_of(family, kind):
            more, count = faults(subject, typed_alone=kind != first and not WHOLE)
            wrong += more
            tried += count
    assert not wrong, f"{len(wrong)} of {tried}\n" + "\n".join(wrong)
    assert tried > 250


def test_the_same_of_exact_aggregates_and_heavy_hitters() -> None:
    wrong, tried = [], 0
    for subject in (*exact_subjects(), hitters()):
        more, count = faults(subject)
        wrong += more
        tried += count
    assert not wrong, f"{len(wrong)} of {tried}\n" + "\n".join(wrong)
    assert tried > 2000

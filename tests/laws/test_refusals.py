"""A refused call has changed nothing: what it was made on equals a copy made before, and goes on like it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge import CountMin, FrequentItems, HeavyHitters
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.core.protocol import SketchError

from ..cases import each
from .families import CASES, FAMILIES, IDS, INPUTS, WHOLE, Family, sized
from .family import each_family
from .refusals import (
    COLUMNS,
    ERRORS,
    GIVEN,
    NAMES,
    NUMBERS,
    ROWS,
    Refusal,
    accepted_inputs,
    broken,
    group_numbers,
    groups_merges,
    merges,
    updates,
)
from .streams import fresh

SIZES = (0, 5, 700)
N = 3


def goes_on(family: Family) -> bool:
    """Whether one more batch gives a sketch and its copy the same bytes, drawn coins and all."""
    return family.repeats and (family.resumes or family.name == "KLL")


def refused(refusal: Refusal, made: Any) -> bool:
    """Whether it is refused; if so, in our words."""
    try:
        refusal.attempt(made)
    except ERRORS as error:
        ours = not isinstance(error, (pa.ArrowException, UnicodeError))
        assert ours and len(str(error)) > 15, f"{refusal.name}: {error!r}"
        return True
    assert not refusal.certain, f"{refusal.name}: was accepted"
    return False


def hold(family: Family, kind: str, size: int, refusals: Iterable[Refusal]) -> int:
    """Try them all on one sketch; how many were refused."""
    pristine = family.feed(family.new(kind), fresh(kind, 7, size))
    image, more, count = pristine.to_bytes(), fresh(kind, 8, 20), 0
    expected = family.feed(pristine.copy(), more, size)
    for refusal in refusals:
        sketch = pristine.copy()
        if not refused(refusal, sketch):
            continue
        count += 1
        assert sketch == pristine and sketch.to_bytes() == image, refusal.name
        if size == max(SIZES) and not WHOLE:
            continue  # smaller ones go on, and in `make soak` these
        family.feed(sketch, more, size)
        if goes_on(family):
            assert sketch == expected, f"{refusal.name}: goes on in another way"
        else:
            assert str(sketch)[:20] == str(expected)[:20], refusal.name
    return count


def hold_groups(family: Family, kind: str, size: int, refusals: Iterable[Refusal]) -> int:
    """Try them all on groups; how many were refused."""
    column, more = fresh(kind, 7, size), fresh(kind, 8, 20)

    def made() -> Any:
        groups = family.many(N, kind)
        family.feed_groups(groups, np.arange(size) % N, column)
        return groups

    pristine, count, groups = made().to_arrow(), 0, None
    on = made()
    family.feed_groups(on, np.arange(20) % N, more, size)
    expected = on.to_arrow()
    for refusal in refusals:
        groups = made()
        before = pristine if family.repeats else groups.to_arrow()
        if not refused(refusal, groups):
            continue
        count += 1
        assert groups.to_arrow() == before, refusal.name
        family.feed_groups(groups, np.arange(20) % N, more, size)
        if goes_on(family):
            assert groups.to_arrow() == expected, f"{refusal.name}: goes on in another way"
    return count


@each_family(("family", "kind", "size"), sized(SIZES), ids=str)
def test_a_refused_update_changes_nothing(family: Family, kind: str, size: int) -> None:
    assert hold(family, kind, size, updates(family, kind, groups=False)) >= len(NAMES)


@pytest.mark.slow
@each_family(("family", "kind", "size"), sized(SIZES), ids=str)
def test_a_refused_merge_changes_nothing(family: Family, kind: str, size: int) -> None:
    assert hold(family, kind, size, merges(family, kind)) >= len(FAMILIES)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_refused_bytes_give_no_sketch(family: Family, kind: str) -> None:
    for name, image, certain in broken(family, kind):
        attempt = Refusal(name, lambda _, image=image: family.read(image, kind), certain)
        refused(attempt, None)


@each_family(("family", "kind", "size"), sized((0, 30)), ids=str)
def test_a_refused_update_of_groups_changes_nothing(family: Family, kind: str, size: int) -> None:
    assert hold_groups(family, kind, size, group_numbers(family, kind)) > 5
    assert hold_groups(family, kind, size, updates(family, kind, groups=True)) >= len(NAMES)


@pytest.mark.slow
@each_family(("family", "kind", "size"), sized((0, 30)), ids=str)
def test_a_refused_merge_into_groups_changes_nothing(family: Family, kind: str, size: int) -> None:
    assert hold_groups(family, kind, size, groups_merges(family, kind)) > 8


@pytest.mark.parametrize("line", REGISTRY.values(), ids=lambda line: line.name)
def test_unknown_inputs_are_refused_by_name(line: Any) -> None:
    classes = [line.groups_class(), *([] if line.exact else [line.sketch_class()])]
    for made in classes:
        named = accepted_inputs(made)
        assert {*line.inputs} <= {*named}, "what the registry names, an update takes"
        assert {*named} <= {"weight", "time", "key", "value", "partition", "offset"}, "one word for one thing"
        call = made().update
        rows = (np.zeros(0, np.int64),) if made is classes[0] else ()
        for name in {*NAMES} - {*named}:
            with pytest.raises(TypeError, match=rf"takes .*values.*, got {name}"):
                call(*rows, [], **{name: [1]})


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_sketch_and_groups_take_the_same_inputs(family: Family) -> None:
    assert accepted_inputs(family.single) == accepted_inputs(family.groups)


LATIN = (b"caf\xe9", b"\xff\xfe", b"cut \xe6\x97", b"fine")
SHOWN = [one.decode("utf-8", "replace") for one in LATIN]
KEEPING = [line for line in REGISTRY.values() if line.keeps_values]


def texts_of(answer: Any) -> set[str]:
    """All texts in an answer."""
    if isinstance(answer, dict):
        return set().union(*map(texts_of, answer.values()))
    if isinstance(answer, (list, tuple)):
        return set().union(*map(texts_of, answer))
    return {answer} if isinstance(answer, str) else set()


@pytest.mark.parametrize("line", KEEPING, ids=lambda line: line.name)
def test_what_is_not_utf_8_is_kept_as_it_is_shown(line: Any) -> None:
    column = pa.array(LATIN, pa.binary()).view(pa.string())
    given = {
        name: column if name == "key" else INPUTS[name](np.arange(4) + 1)[name]
        for name in line.inputs
        if name in INPUTS
    }
    params = {name: 1.0 for name in line.params if name == "p"} | line.of_column(pa.string())
    groups = line.groups_class()(2, **params)
    groups.update(np.zeros(4, np.int64), column, **given)
    groups.merge(np.array([1]), groups.to_arrow()[:1])
    answers = groups.answers()
    for answer in answers.to_pylist() if isinstance(answers, pa.Array) else answers:
        result = texts_of(answer)
        assert result and result <= {*SHOWN}
        assert line.exact or result == {*SHOWN}
    if not line.exact:
        single = line.sketch_class()(**params).update(column, **given)
        assert texts_of(single.answer()) == {*SHOWN}
        assert single.copy() == single


def test_one_text_of_two_spellings_is_counted_once() -> None:
    two = pa.array([b"caf\xe9", b"caf\xe8", "caf\ufffd".encode()], pa.binary()).view(pa.string())
    assert FrequentItems().update(two).top() == [("caf\ufffd", 3, 3, 3)]
    assert HeavyHitters().update(two).top() == [("caf\ufffd", 3, 3, 3)]


@pytest.mark.parametrize("values", [[0.5], ["text"], pa.array([b"x"]), [object()], [1, -1, "a"]])
def test_refused_heavy_hitters_are_not_counted(values: Any) -> None:
    hitters = HeavyHitters(k=2).update([1, 1, 2])
    counts, top = hitters.counts.copy(), hitters.top()
    with pytest.raises((TypeError, SketchError)):
        hitters.update(values)
    for weight in ([1], [-1, 1, 1], [0.5] * 3):
        with pytest.raises(ValueError, match="weight"):
            hitters.update([1, 2, 3], weight)
    with pytest.raises(TypeError, match="values must be int64"):
        hitters.merge(HeavyHitters(k=2).update("a"))
    for stranger in (HeavyHitters(eps=0.5), CountMin(), None):
        with pytest.raises(SketchError):
            hitters.merge(stranger)
    assert hitters.counts == counts and hitters.top() == top
    assert hitters.update([2, 2]).top() == [(2, 3, 3, 3), (1, 2, 2, 2)]


@pytest.mark.parametrize(("held", "given"), [([0.5] * 5, [10**17 + 1]), ([10**17 + 1] * 5, [0.5])])
@pytest.mark.parametrize("family", [one for one in FAMILIES if one.seeded and "long" in one.kinds], ids=str)
def test_samples_refuse_integers_that_a_double_would_change(family: Family, held: Any, given: Any) -> None:
    if family.name in ("KLL", "REQ"):
        return  # of the kind that it was made for, and 4-byte floats, as each says
    share = {"p": 1.0} if "p" in family.params else {}
    sketch, other = (family.single(**{**family.params, **share, "seed": 1}) for _ in range(2))
    family.feed(sketch, held)
    family.feed(other, given)
    before, image = sketch.copy(), sketch.to_bytes()
    for refuse in (lambda: family.feed(sketch, given), lambda: sketch.merge(other)):
        with pytest.raises(SketchError, match="2\\^53"):
            refuse()
        assert sketch.to_bytes() == image
    assert family.feed(sketch, held, 5) == family.feed(before, held, 5)


EXACT = [name for name, line in REGISTRY.items() if line.exact]


def exact_updates(usual: dict[str, Any], plain: list[Any]) -> Iterable[Refusal]:
    """Everything to try with `update` of an exact aggregate's groups."""
    numbers = np.arange(ROWS) % N
    inputs = {**GIVEN, "categories": lambda: pa.array(["a", "b", "c", "d"]).dictionary_encode()}
    for name, column in COLUMNS.items():
        yield Refusal(f"values: {name}", lambda to, c=column: to.update(numbers, c(), **usual))
    for one, (name, given) in itertools.product(usual, inputs.items()):
        yield Refusal(
            f"{one}=: {name}", lambda to, o=one, g=given: to.update(numbers, plain, **{**usual, o: g()})
        )
    for name, wrong in NUMBERS.items():
        yield Refusal(f"groups: {name}", lambda to, w=wrong: to.update(w, plain, **usual), True)
    for name, column in COLUMNS.items():
        yield Refusal(f"merge: {name}", lambda to, c=column: to.merge(numbers, c()))


@each("before", [None, [1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("name", EXACT)
def test_what_exact_groups_refuse_changes_nothing(name: str, before: list[Any] | None) -> None:
    line = REGISTRY[name]
    usual = {word: np.arange(ROWS) + 5 for word in line.inputs}

    def made() -> Any:
        groups = line.groups_class()(N)
        if before is not None:
            groups.update(np.arange(ROWS) % N, before, **usual)
        return groups

    try:
        pristine = made().to_arrow()
    except TypeError:
        pytest.skip("values that this aggregate doesn't take")
    refusals = 0
    for refusal in exact_updates(usual, before or [1, 2, 3, 4]):
        groups = made()
        if refused(refusal, groups):
            refusals += 1
            assert groups.to_arrow() == pristine, refusal.name
    assert refusals > len(NUMBERS)

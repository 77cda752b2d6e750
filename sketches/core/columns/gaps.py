"""Batches of only gaps as pandas writes them: a column of floats, all of them NaN.

If a batch of a text column contains no text, pandas reads it as such a column. Among floats, NaN is a value,
so a sketch that accepts floats reads the batch as floats; any other reads it as gaps. If such batches come
first, later values decide: values that can't be mixed with floats show that the batches were gaps, and the
sketch ignores them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..lazy import np, pa

_BEFORE = "_before_gaps"
"""The attribute with a sketch's state before batches of only gaps, as long as nothing else has come."""
_DECIDED = "_decided"
"""The attribute that records whether anything but gaps has come."""
_CHANGING = ("merge", "delete", "admit", "intersect", "subtract", "merge_columns", "update_ordered")


def gaps_alone(values: Any) -> bool:
    """Whether a batch consists of floats, all of them NaN or null, with at least one NaN.

    >>> gaps_alone([float("nan"), None]), gaps_alone(np.array([np.nan, 1.0])), gaps_alone([None])
    (True, False, False)
    """
    if isinstance(values, (list, tuple)):
        known = (value for value in values if value is not None)
        first = next(known, None)
        return _is_nan(first) and all(map(_is_nan, known))
    if isinstance(values, float):
        return _is_nan(values)
    numbers = _floats(values)
    return numbers is not None and len(numbers) > 0 and bool(np.isnan(numbers[0]) and np.isnan(numbers).all())


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _floats(values: Any) -> np.ndarray | None:
    """Return a batch's floats without nulls; None for a batch of another type."""
    from .columns import Values, as_array

    if isinstance(values, Values):
        return values.numbers if values.kind == "float64" else None
    if type(values) is np.ndarray:
        return values if values.dtype.kind == "f" and values.ndim == 1 else None
    dtype = getattr(values, "dtype", None)
    if "loat" in str(dtype) or "double" in str(dtype):
        values = as_array(values)
    if isinstance(values, (pa.Array, pa.ChunkedArray)) and pa.types.is_floating(values.type):
        return values.drop_null().to_numpy()
    return None


def _is_empty(values: Any) -> bool:
    """Whether a batch says nothing about the kind of values: it has no rows, or only nulls."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values.null_count == len(values)
    if isinstance(values, (list, tuple)):
        return all(value is None for value in values)
    return values is None


def taking_gaps(cls: type, at: int) -> None:
    """Make a class's own `update`, with the values as argument number `at`, accept batches of only gaps."""
    own = vars(cls)
    if "update" in own and not getattr(own["update"], "__isabstractmethod__", False):
        cls.update = _taking(own["update"], at)  # type: ignore[attr-defined]
    for name in _CHANGING:
        if name in own and not getattr(own[name], "__isabstractmethod__", False):
            setattr(cls, name, _deciding(own[name]))


def _taking(update: Callable[..., Any], at: int) -> Callable[..., Any]:
    @functools.wraps(update)
    def taken(self: Any, *args: Any, **inputs: Any) -> Any:
        values: Any = args[at] if len(args) > at else inputs.get("values")
        state = vars(self)
        gaps, before = gaps_alone(values), state.get(_BEFORE)
        if gaps and before is None and _DECIDED not in state:
            before = _state_of(self)
        try:
            result = update(self, *args, **inputs)
        except (TypeError, ValueError):
            if gaps:
                nulls = pa.nulls(1 if isinstance(values, float) else len(values))
                given = (*args[:at], nulls, *args[at + 1 :]) if len(args) > at else args
                return update(self, *given, **(inputs | {"values": nulls} if "values" in inputs else inputs))
            if before is None:
                raise
            return _taken_from(before, self, update, args, inputs)
        if gaps:
            state[_BEFORE] = before
        elif not _is_empty(values):
            state.pop(_BEFORE, None)
            state[_DECIDED] = True
        return result

    return taken


def _taken_from(
    before: dict[str, Any], sketch: Any, update: Callable[..., Any], args: Any, inputs: dict[str, Any]
) -> Any:
    """Update the sketch's state from before the batches of gaps; if that is refused too, change nothing."""
    after, n = _own(vars(sketch)), len(sketch) if hasattr(sketch, "resize") else 0
    _put(sketch, before)
    try:
        if n:
            sketch.resize(n)
        result = update(sketch, *args, **inputs)
    except BaseException:
        _put(sketch, after)
        raise
    vars(sketch)[_DECIDED] = True
    return result


def _put(sketch: Any, state: dict[str, Any]) -> None:
    """Replace the sketch's state."""
    for name in _own(vars(sketch)).keys() - state.keys():
        del vars(sketch)[name]
    vars(sketch).update(state)


def _deciding(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def decided(self: Any, *args: Any, **inputs: Any) -> Any:
        result = method(self, *args, **inputs)
        vars(self).pop(_BEFORE, None)
        vars(self)[_DECIDED] = True
        return result

    return decided


def _state_of(sketch: Any) -> dict[str, Any]:
    """Return an independent copy of the state of a sketch or of groups."""
    return sketch.__getstate__() if hasattr(sketch, "resize") else _own(vars(sketch.copy()))


def _own(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state without the lock."""
    return {name: value for name, value in state.items() if not name.startswith("_lock")}

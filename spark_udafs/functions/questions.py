"""The questions that functions ask a sketch: the types of the answers, and how to compute them.

A question goes to any family that can answer it, through the methods of its sketches. Unions and differences
count as questions: their answer is a sketch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...operators.families import Family
from ...operators.table.sets import compared
from ...sampling.core.bottom_k import plain
from ...sketches.core.answers import USUAL_QUANTILES, quantile_rows
from ...sketches.core.columns.columns import as_values
from ...sketches.core.distinct_counter import DistinctCounter
from ...sketches.core.protocol import SketchError
from ...sketches.frequent_items.approx_top_k import state_type, to_state
from .arguments import converted

_LONG, _DOUBLE, _TEXT = pa.int64(), pa.float64(), pa.string()
_ITEM: dict[str, pa.DataType] = {
    "": _TEXT,
    "string": _TEXT,
    "long": _LONG,
    "double": _DOUBLE,
    "float": pa.float32(),
    "binary": pa.binary(),
}
"""The types of items and quantiles by the kind in a function's name."""

BOUNDED = pa.struct([("estimate", _DOUBLE), ("lower", _DOUBLE), ("upper", _DOUBLE)])
COUNTED = pa.struct([("estimate", _LONG), ("lower", _LONG), ("upper", _LONG)])
COMPARED = pa.struct([(name, BOUNDED) for name in ("union", "intersection", "difference", "jaccard")])


@dataclass(frozen=True, slots=True)
class SketchQuestion:
    """A question: what it returns, its options, and the function that asks a sketch, given the options.

    `columns` are the required arguments besides the sketch.
    """

    returns: pa.DataType
    ask: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


def answer_of(line: Family, kind: str) -> SketchQuestion:
    """Return a family's default question, for sketches of that kind of item."""
    sketch: Any = line.sketch_class()
    if hasattr(sketch, "quantiles"):
        # A DDSketch of integers may answer with a value between two of them.
        value = _ITEM[kind] if line.name == "kll_quantiles" and kind else _DOUBLE
        row = pa.struct([("q", _DOUBLE), ("value", value), ("lower", value), ("upper", value)])
        # Weighted DDSketches from other libraries may count fractions of values.
        n = _DOUBLE if line.name == "quantiles" else _LONG
        return SketchQuestion(pa.struct([("n", n), ("quantiles", pa.list_(row))]), _quantiles, {"q": None})
    if hasattr(sketch, "top"):
        item = pa.struct([("item", _ITEM[kind]), *COUNTED])
        return SketchQuestion(pa.list_(item), _top, dict(line.answer))
    if hasattr(sketch, "strata"):
        texts = [("key", _TEXT), ("n", _LONG), ("values", pa.list_(_TEXT)), ("error", _DOUBLE)]
        return SketchQuestion(pa.struct([("n", _LONG), ("strata", pa.list_(pa.struct(texts)))]), _strata)
    if hasattr(sketch, "samples"):
        kept = pa.list_(pa.struct([("item", _ITEM[kind]), ("weight", _DOUBLE)]))
        return SketchQuestion(pa.struct([("n", _LONG), ("weight", _DOUBLE), ("values", kept)]), _answer)
    if hasattr(sketch, "values"):
        fields = [("n", _LONG), ("values", pa.list_(_ITEM[kind])), ("error", _DOUBLE)]
        return SketchQuestion(pa.struct(fields), _SAMPLES[kind])
    if line.name == "sliding_distinct":
        return SketchQuestion(BOUNDED, _lately, {"window": None})
    if line.name in _OTHER:
        return SketchQuestion(_OTHER[line.name], _answer)
    return (
        SketchQuestion(BOUNDED, _answer)
        if issubclass(sketch, DistinctCounter)
        else SketchQuestion(_TEXT, _shown)
    )


def question_of(verb: str, line: Family, kind: str) -> SketchQuestion | None:
    """Return a verb's question to a family's sketches of that kind of item; None if they can't answer it."""
    sketch: Any = line.sketch_class()
    other = ("other",)
    if verb == "answer":
        return answer_of(line, kind)
    if kind not in ("", *line.aggregate.kinds):
        return None
    if verb == "rank" and hasattr(sketch, "rank"):
        return SketchQuestion(BOUNDED, _rank, columns=("value",))
    if verb == "count" and line.name in _COUNTING:
        return SketchQuestion(COUNTED, _count, columns=("item",))
    if verb == "contains" and hasattr(sketch, "contains"):
        return SketchQuestion(pa.bool_(), _contains, columns=("item",))
    if verb == "union":
        return SketchQuestion(pa.binary(), _union, columns=other)
    if verb == "intersect" and (hasattr(sketch, "__and__") or hasattr(sketch, "intersect")):
        return SketchQuestion(pa.binary(), _intersect, columns=other)
    if verb == "subtract" and hasattr(sketch, "__sub__"):
        return SketchQuestion(pa.binary(), _subtract, columns=other)
    if verb == "compare" and hasattr(sketch, "jaccard"):
        return SketchQuestion(COMPARED, compared, columns=other)
    if verb == "print":
        return SketchQuestion(_TEXT, repr)
    if verb == "to_spark" and line.name == "frequency":
        return SketchQuestion(pa.binary(), _to_spark)
    # Spark has no sketches of bytes.
    if verb == "to_spark" and line.name == "top_k" and kind != "binary":
        return SketchQuestion(state_type(kind or "string"), _to_state)
    return None


def item_kinds(line: Family) -> tuple[str, ...]:
    """Return the kinds of item in function names: those that bytes don't record, and samples' plain ones."""
    if line.aggregate.kinds:
        return line.aggregate.kinds
    sketch: Any = line.sketch_class()
    return ("long", "double") if hasattr(sketch, "values") and not hasattr(sketch, "strata") else ()


_OTHER = {
    "frequency": pa.struct([("total", _LONG), ("error", _LONG), ("confidence", _DOUBLE)]),
    "membership": pa.struct([("count", _LONG), ("rate", _DOUBLE)]),
    "sliding_membership": pa.struct(
        [("count", _LONG), ("lower", _LONG), ("upper", _LONG), ("rate", _DOUBLE)]
    ),
    "decayed_count": pa.struct([("n", _LONG), *BOUNDED]),
    "tuple": pa.struct([*BOUNDED, ("totals", pa.list_(BOUNDED))]),
}
"""The types of other answers, by family; all other families answer in JSON."""


_COUNTING = ("frequency", "top_k")
"""Families that estimate how often one item occurred."""


def _answer(sketch: Any) -> Any:
    return sketch.answer()


def _shown(sketch: Any) -> str:
    return json.dumps(sketch.answer())


def _quantiles(sketch: Any, q: Any = None) -> dict[str, Any]:
    shares = USUAL_QUANTILES if q is None else q if isinstance(q, list) else [q]
    rows = quantile_rows(sketch, [converted("answer", "q", share, 0.5) for share in shares])
    names = ("q", "value", "lower", "upper")
    return {"n": sketch.n, "quantiles": [dict(zip(names, row)) for row in rows]}


def _top(sketch: Any, k: Any = 10) -> list[dict[str, Any]]:
    return [item._asdict() for item in sketch.top(converted("answer", "k", k, 10))]


def _lately(sketch: Any, window: Any = None) -> dict[str, float]:
    span = window if window is None or isinstance(window, timedelta) else float(window)
    lower, upper = sketch.bounds(window=span)
    return {"estimate": sketch.estimate(window=span), "lower": lower, "upper": upper}


def _rank(sketch: Any, value: Any) -> dict[str, Any] | None:
    if not sketch.n:
        return None
    number = value[0].as_py()
    if isinstance(number, date):  # includes datetime, a subclass
        number = int(as_values(value).numbers[0])
    elif isinstance(number, Decimal):
        number = float(number)
    bounds = sketch.rank_bounds(number) if hasattr(sketch, "rank_bounds") else (None, None)
    return {"estimate": sketch.rank(number), "lower": bounds[0], "upper": bounds[1]}


def _count(sketch: Any, item: pa.Array) -> dict[str, int]:
    lower, upper = sketch.bounds(item)
    return {"estimate": sketch.estimate(item), "lower": lower, "upper": upper}


def _contains(sketch: Any, item: pa.Array) -> bool:
    return item in sketch


def _sample(sketch: Any, items: list[Any]) -> dict[str, Any]:
    return {"n": sketch.n, "values": items, "error": sketch.error()}


def _sampled_texts(sketch: Any) -> dict[str, Any]:
    return _sample(sketch, [_text(item) for item in sketch.values().to_pylist()])


def _sampled_longs(sketch: Any) -> dict[str, Any]:
    return _sampled(sketch, "long", (_LONG,))


def _sampled_doubles(sketch: Any) -> dict[str, Any]:
    return _sampled(sketch, "double", (_LONG, _DOUBLE))


def _sampled(sketch: Any, kind: str, types: tuple[pa.DataType, ...]) -> dict[str, Any]:
    items = sketch.values()
    if len(items) and items.type not in types:
        raise SketchError(
            f"{sketch.family}: holds items of the type {items.type}, not {kind}s; "
            "the function without a kind in its name gives any as text"
        )
    return _sample(sketch, items.to_pylist())


_SAMPLES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "": _sampled_texts,
    "long": _sampled_longs,
    "double": _sampled_doubles,
}


def _strata(sketch: Any) -> dict[str, Any]:
    answer = sketch.answer()
    for row in answer["strata"]:
        row["key"], row["values"] = _text(row["key"]), [_text(value) for value in row["values"]]
    return answer


def _text(value: Any) -> str | None:
    """Write an item as text: strings, times and decimals directly, anything else as JSON.

    >>> _text("a"), _text(1), _text({"user": "ann"})
    ('a', '1', '{"user": "ann"}')
    """
    shown = plain(value)
    return shown if shown is None or isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _union(sketch: Any, other: Any) -> bytes:
    return (sketch | other).to_bytes()


def _intersect(sketch: Any, other: Any) -> bytes:
    both = sketch & other if hasattr(sketch, "__and__") else sketch.intersect(other)
    return both.to_bytes()


def _subtract(sketch: Any, other: Any) -> bytes:
    return (sketch - other).to_bytes()


def _to_spark(sketch: Any) -> bytes:
    return sketch.to_spark()


def _to_state(sketch: Any) -> dict[str, Any]:
    image = pa.array([sketch.to_bytes()], pa.binary())
    return to_state(image, sketch.kind, sketch.max_size)[0].as_py()

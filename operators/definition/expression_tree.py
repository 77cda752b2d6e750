"""A Polars expression as a tree of named calls, whichever version of Polars built it.

The only way to walk an expression is Polars' serialised form. Polars documents it as unstable, and it does
change: between 1.20 and 2.1 literals had three forms, `list.unique` became an `eval`, and a time built by
`from_epoch` changed from a cast to a multiplication. So nothing is stored in that form. It is parsed here,
once, into nodes with names of our own (those of Polars' Python methods: ``str.split``, ``is_between``). The
check for row-wise expressions (`row_wise`) and their text (`expression_text`) are built on these nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl


@dataclass(frozen=True, slots=True)
class Node:
    """One call in an expression: its name, its inputs, and its parameters as plain JSON.

    For a method call, the first of `inputs` is the object. `raw` is Polars' own form of the node.
    """

    name: str
    inputs: tuple[Node, ...] = ()
    parameters: Any = None
    raw: Any = None

    def walk(self) -> Iterator[Node]:
        """Yield the node itself and all nodes below it."""
        yield self
        for node in self.inputs:
            yield from node.walk()

    def expression(self) -> pl.Expr:
        """The node as a Polars expression."""
        return pl.Expr.deserialize(StringIO(json.dumps(self.raw)), format="json")


class Unreadable(StreamgaugeError, ValueError):
    """This version of Polars can't serialise an expression."""


def tree_of(expression: pl.Expr) -> Node:
    """Parse an expression. Raises `Unreadable` for what this version of Polars can't serialise.

    >>> tree = tree_of(pl.col("tags").list.len() > 2)
    >>> tree.name, [node.name for node in tree.inputs]
    ('>', ['list.len', 'literal'])
    """
    return _node(_serialised(expression))


OPERATORS = {
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "Plus": "+",
    "Minus": "-",
    "Multiply": "*",
    "Divide": "/",
    "TrueDivide": "/",
    "FloorDivide": "//",
    "Modulus": "%",
    "And": "&",
    "LogicalAnd": "&",
    "Or": "|",
    "LogicalOr": "|",
    "Xor": "^",
    "EqValidity": "eq_missing",
    "NotEqValidity": "ne_missing",
    "TruncDivide": "truncdiv",
}
"""Polars' names of binary operators, and ours."""

_SELECTORS = {"Wildcard", "Columns", "DtypeColumn", "IndexColumn", "Nth", "Selector"}

_CHILDREN = {
    "Cast": ("expr",),
    "Ternary": ("predicate", "truthy", "falsy"),
    "Eval": ("expr", "evaluation"),
    "StructEval": ("expr", "evaluation"),
    "RenameAlias": ("expr",),
    "Filter": ("input", "by"),
    "Sort": ("expr",),
    "SortBy": ("expr", "by"),
    "Slice": ("input", "offset", "length"),
    "Gather": ("expr", "idx"),
    "Explode": ("input",),
    "Over": ("function", "partition_by"),
    "Window": ("function", "partition_by"),
    "Rolling": ("function",),
}
"""Where a node that isn't a function stores its children."""

_NAMED = {
    "Ternary": "when",
    "Eval": "list.eval",
    "StructEval": "struct.with_fields",
    "RenameAlias": "name.change",
    "Window": "over",
}

_ROOMS = {
    "StringExpr": "str.",
    "ListExpr": "list.",
    "ArrayExpr": "arr.",
    "TemporalExpr": "dt.",
    "StructExpr": "struct.",
    "BinaryExpr": "bin.",
    "Categorical": "cat.",
    "CategoricalExpr": "cat.",
    "Extension": "ext.",
    "Boolean": "",
    "Trigonometry": "",
    "Pow": "",
    "Range": "",
    "Business": "",
    "Bitwise": "bitwise_",
}
"""Groups of functions in Polars, and the prefix of our names for them."""

_RENAMED = {
    "round_sf": "round_sig_figs",
    "rleid": "rle_id",
    "atan2": "arctan2",
    "as_struct": "struct",
    "generic": "pow",
    "not": "not_",
    "negate": "neg",
    "add_business_day": "dt.add_business_days",
    "is_business_day": "dt.is_business_day",
    "random": "sample",
    "q_cut": "qcut",
    "str.lowercase": "str.to_lowercase",
    "str.uppercase": "str.to_uppercase",
    "str.titlecase": "str.to_titlecase",
    "str.split_n": "str.splitn",
    "str.concat_horizontal": "concat_str",
    "str.concat_vertical": "str.join",
    "str.contains_many": "str.contains_any",
    "str.format": "format",
    "list.length": "list.len",
    "arr.length": "arr.len",
    "list.concat": "concat_list",
    "arr.concat": "concat_arr",
    "dt.week_day": "dt.weekday",
    "dt.datetime_function": "datetime",
    "dt.duration": "duration",
    "dt.time_stamp": "dt.timestamp",
    "struct.field_by_name": "struct.field",
    "struct.multiple_fields": "struct.field",
    "struct.select_fields": "struct.field",
}
"""Functions with another name in Python, or in another version."""


def _serialised(expression: pl.Expr) -> Any:
    try:
        return json.loads(expression.meta.serialize(format="json"))
    except Exception as error:  # Polars raises its own errors; pickle raises any that a function causes
        raise Unreadable(str(error).split("\n")[0]) from None


def _node(raw: Any, inside: bool = False) -> Node:
    """Parse a node; `inside` a list, the empty column name means the element."""
    if isinstance(raw, str):
        name = "columns" if raw in _SELECTORS else _snake(raw)
        return Node(name, parameters=raw if raw in _SELECTORS else None, raw=raw)
    kind, body = next(iter(raw.items()))
    if kind == "Column":
        if inside and body == "":
            return Node("element", raw=raw)
        several = body.startswith("^") and body.endswith("$")
        return Node("columns" if several else "col", parameters=body, raw=raw)
    if kind == "Selector":
        body = body.get("ByName", {}).get("names", body) if isinstance(body, dict) else body
        body = body.get("Matches", body) if isinstance(body, dict) else body
    if kind in _SELECTORS:
        return Node("columns", parameters=body, raw=raw)
    if kind == "Exclude":
        return Node("columns", parameters=raw, raw=raw)
    if kind == "Literal":
        return Node("literal", raw=raw)
    if kind == "Field":
        return Node("field", parameters=body, raw=raw)
    if kind == "Alias":
        return Node("alias", (_node(body[0], inside),), body[1], raw)
    if kind == "KeepName":
        return Node("name.keep", (_node(body, inside),), raw=raw)
    if kind == "BinaryExpr":
        sides = (_node(body["left"], inside), _node(body["right"], inside))
        return Node(OPERATORS.get(body["op"], f"operator {body['op']}"), sides, raw=raw)
    if kind == "Function":
        return _function(body, raw, inside)
    if kind == "AnonymousFunction":
        inputs = tuple(_node(below, inside) for below in body["input"])
        return Node("map_batches", inputs, body, raw)
    if kind == "Agg":
        return _aggregate(body, raw, inside)
    if kind in _CHILDREN:
        return _other(kind, body, raw, inside)
    return Node(_snake(kind), raw=raw)


def _function(body: Any, raw: Any, inside: bool) -> Node:
    room, kind = "", body["function"]
    name, parameters = _variant(kind)
    if name in _ROOMS:
        room = _ROOMS[name]
        name, parameters = _variant(parameters)
    name = room + _snake(name)
    inputs = tuple(_node(below, inside) for below in body["input"])
    return Node(_RENAMED.get(name, name), inputs, parameters, raw)


def _aggregate(body: Any, raw: Any, inside: bool) -> Node:
    """Parse an aggregate of a column; the column is stored in one of four forms."""
    name, content = _variant(body)
    if isinstance(content, dict) and ("input" in content or "expr" in content):
        below = content.get("input", content.get("expr"))
    else:
        below = content[0] if isinstance(content, list) else content
    parameters = content[1:] if isinstance(content, list) else None
    counted = name == "Count" and (content[1] if isinstance(content, list) else content.get("include_nulls"))
    return Node("len" if counted else _snake(name), (_node(below, inside),), parameters, raw)


def _other(kind: str, body: Any, raw: Any, inside: bool) -> Node:
    if kind == "Explode" and "input" not in body:
        body = {"input": body}
    given = {child: body.get(child) for child in _CHILDREN[kind]}
    inputs: list[Node] = []
    for child, below in given.items():
        within = inside or (kind == "Eval" and child == "evaluation")
        inputs += [_node(one, within) for one in (below if isinstance(below, list) else [below]) if one]
    parameters = {key: value for key, value in body.items() if key not in given}
    name = _NAMED.get(kind, _snake(kind))
    if kind == "Eval" and "Array" in json.dumps(parameters):
        name = "arr.eval"
    return Node(name, tuple(inputs), parameters, raw)


def _variant(variant: Any) -> tuple[str, Any]:
    """The name of an enum's variant, and its content."""
    return (variant, None) if isinstance(variant, str) else next(iter(variant.items()))


def _snake(name: str) -> str:
    """Convert Polars' name of a node to that of the Python method.

    >>> _snake("IsFirstDistinct"), _snake("ArcSin"), _snake("ZFill"), _snake("RLE")
    ('is_first_distinct', 'arcsin', 'zfill', 'rle')
    """
    name = name.replace("Arc", "Arc~").replace("ZFill", "Zfill")
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return parts.replace("~_", "").replace("~", "")

"""The parts of a parsed statement that the planner reads: anything else that the parser sets is refused.

The parser's trees have more parts than the planner supports, and its next release may add more. A part that
is not read would silently be missing from the answer, so each tree is checked against `_GRAMMAR`: for the
place of a node, the classes allowed there, and the arguments that are read from each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from ..errors import error_at
from .nodes import Emit, Length, WindowClause, WindowedTable

_READ = ""
"""The rule for an argument that is a plain value, or whose parts the planner reads one by one."""

_Arguments = Mapping[str, Any]
"""The arguments of a class, each with the place of its nodes, or with its possible values."""

_SIDES = {"this": "scalar", "expression": "scalar"}
_SCALARS: Mapping[type, _Arguments] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _SIDES),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _SIDES),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or), _SIDES),
    exp.DPipe: {**_SIDES, "safe": _READ},
    **{kind: {**_SIDES, "negate": _READ} for kind in (exp.Like, exp.ILike, exp.Is)},
    **{kind: {"this": "scalar"} for kind in (exp.Paren, exp.Neg, exp.Not)},
    exp.Escape: _SIDES,
    exp.Column: {"this": "name", "table": "name", "db": "name", "catalog": "name"},
    exp.Literal: {"this": _READ, "is_string": _READ},
    exp.Boolean: {"this": _READ},
    exp.Null: {},
    exp.In: {"this": "scalar", "expressions": "scalar"},
    exp.Between: {"this": "scalar", "low": "scalar", "high": "scalar", "symmetric": _READ},
    exp.Case: {"this": "scalar", "ifs": "case", "default": "scalar"},
    exp.If: {"this": "scalar", "true": "scalar", "false": "scalar"},
    exp.Cast: {"this": "scalar", "to": "type"},
    exp.TryCast: {"this": "scalar", "to": "type", "safe": _READ},
    exp.Extract: {"this": "word", "expression": "scalar"},
    exp.Trim: {"this": "scalar", "expression": "scalar", "position": ("BOTH", "LEADING", "TRAILING")},
    exp.Substring: {"this": "scalar", "start": "scalar", "length": "scalar"},
    exp.StrPosition: {"this": "scalar", "substr": "scalar"},
    exp.Bracket: {"this": "scalar", "expressions": "scalar"},
    exp.Array: {"expressions": "scalar", "bracket_notation": _READ},
    exp.Dot: {"this": "scalar", "expression": "name"},
    exp.JSONExtract: {"this": "scalar", "expression": "field"},
    exp.CurrentTimestamp: {},
    exp.Interval: {"this": "constant", "unit": "word"},
    exp.AtTimeZone: {"this": "scalar", "zone": "scalar"},
    exp.RegexpLike: _SIDES,
    exp.Anonymous: {"this": _READ, "expressions": "argument"},
    exp.Filter: {"this": "scalar", "expression": "where"},
}
"""The classes that `Expressions` converts to scalars, and those of aggregates and of time intervals."""

_TABLE = {"this": "name", "alias": "table alias", "windowed": "window of a table", "within": "length"}
_GRAMMAR: Mapping[str, Mapping[type, _Arguments]] = {
    "query": {
        exp.Select: {
            "expressions": "item",
            "from_": "from",
            "joins": "join",
            "where": "where",
            "group": "group",
            "having": "having",
            "window_clause": "window",
            "partition_by": "scalar",
            "emit": "emit",
            "order": "order",
            "limit": "limit",
        }
    },
    "item": {
        **_SCALARS,
        exp.Alias: {"this": "scalar", "alias": "name"},
        exp.Star: {},
        exp.Column: {**_SCALARS[exp.Column], "this": "name or *"},
    },
    "scalar": _SCALARS,
    "argument": {
        **_SCALARS,
        exp.Star: {},
        exp.Kwarg: {"this": "word", "expression": "scalar"},
        exp.PropertyEQ: {"this": "word or key", "expression": "scalar"},
        exp.Alias: {"this": "scalar", "alias": "name"},
    },
    "case": {exp.If: {"this": "scalar", "true": "scalar"}},
    "constant": {exp.Literal: _SCALARS[exp.Literal]},
    "name": {exp.Identifier: {"this": _READ, "quoted": _READ}},
    "name or *": {exp.Identifier: {"this": _READ, "quoted": _READ}, exp.Star: {}},
    "field": {exp.Identifier: {"this": _READ, "quoted": _READ}, exp.Column: {"this": "name"}},
    "word": {
        exp.Var: {"this": _READ},
        exp.Identifier: {"this": _READ, "quoted": _READ},
        exp.Column: {"this": "name"},
    },
    "word or key": {
        exp.Var: {"this": _READ},
        exp.Identifier: {"this": _READ, "quoted": _READ},
        exp.Column: {"this": "name"},
        exp.Literal: _SCALARS[exp.Literal],
    },
    "type": {exp.DataType: {"this": _READ, "expressions": "part of a type", "nested": _READ}},
    "part of a type": {
        exp.DataType: {"this": _READ, "expressions": "part of a type", "nested": _READ},
        exp.ColumnDef: {"this": "name", "kind": "type"},
        exp.DataTypeParam: {"this": "constant"},
    },
    "from": {exp.From: {"this": "table"}},
    "table": {exp.Table: _TABLE},
    "table alias": {exp.TableAlias: {"this": "name"}},
    "join": {
        exp.Join: {
            "this": "joined",
            "on": "scalar",
            "side": ("LEFT", "FULL"),
            "kind": ("INNER", "OUTER", "CROSS", "SEMI", "ANTI"),
        }
    },
    "moment": {exp.Version: {"this": ("TIMESTAMP",), "kind": ("AS OF",), "expression": "scalar"}},
    "joined": {
        exp.Table: {**_TABLE, "version": "moment"},
        exp.Unnest: {"expressions": "scalar", "alias": "alias of UNNEST"},
    },
    "alias of UNNEST": {exp.TableAlias: {"this": "name", "columns": "name"}},
    "where": {exp.Where: {"this": "scalar"}},
    "having": {exp.Having: {"this": "scalar"}},
    "group": {exp.Group: {"expressions": "scalar"}},
    "order": {exp.Order: {"expressions": "ordered"}},
    "ordered": {exp.Ordered: {"this": "scalar", "desc": _READ, "nulls_first": _READ}},
    "limit": {exp.Limit: {"expression": "constant"}},
    "emit": {Emit: {"this": ("FINAL", "CHANGES")}},
    "window": {WindowClause: {"kind": ("TUMBLING", "HOPPING", "SESSION"), "parts": _READ}},
    "window of a table": {
        WindowedTable: {
            "this": _READ,
            "time": "scalar",
            "lengths": "length of windows",
            "partition": "scalar",
            "zone": _READ,
        }
    },
    "length": {Length: {"this": _READ}},
    "length of windows": {Length: {"this": _READ, "months": _READ}},
}
"""The trees that can be planned: by the place of a node, its classes and the arguments read from each."""

_HISTORY = (
    "{what} is not supported here: the versions of a table are joined to a stream's rows, JOIN table FOR "
    "SYSTEM_TIME AS OF stream.time ON …"
)
_INSTEAD: Mapping[tuple[type, str], str] = {
    (exp.Select, "distinct"): "SELECT DISTINCT would keep every row; GROUP BY the columns with a window",
    (exp.Select, "with_"): "WITH: name the rows by a CREATE STREAM … AS SELECT first, and read that",
    (exp.Select, "offset"): "OFFSET: a stream has no first row; filter by time instead",
    (exp.Select, "qualify"): "QUALIFY: CREATE TABLE … AS SELECT first, and filter that",
    (exp.Select, "laterals"): "LATERAL VIEW: write EXPLODE(column) in the SELECT",
    (
        exp.Select,
        "windows",
    ): "a named window belongs to OVER, which looks at other rows: write WINDOW TUMBLING (SIZE …)",
    **dict.fromkeys(
        ((exp.Select, "sample"), (exp.Table, "sample")),
        "TABLESAMPLE: write SAMPLE(column, 100), an aggregate, or filter the rows in WHERE",
    ),
    **dict.fromkeys(
        ((exp.Select, "pivots"), (exp.Table, "pivots")),
        "PIVOT: write an aggregate for each value, COUNT(*) FILTER (WHERE column = 'value')",
    ),
    (exp.Select, "into"): "INTO: write CREATE STREAM … AS SELECT, or INSERT INTO … SELECT",
    (exp.Select, "locks"): "FOR UPDATE: a stream has no rows to lock; leave it out",
    (exp.Select, "kind"): "SELECT AS: write the columns by themselves",
    **dict.fromkeys(
        ((exp.Select, "sort"), (exp.Select, "cluster"), (exp.Select, "distribute")),
        "SORT BY, CLUSTER BY and DISTRIBUTE BY: a stream's rows have no end to sort at; leave it out",
    ),
    **dict.fromkeys(
        ((exp.Table, "db"), (exp.Table, "catalog")),
        "a stream or table has one name, without a catalog or schema; leave them out",
    ),
    **dict.fromkeys(
        ((exp.Version, "this"), (exp.Version, "kind")), "write FOR SYSTEM_TIME AS OF and the row's time"
    ),
    (exp.Table, "version"): _HISTORY.format(what="FOR … AS OF"),
    (exp.Table, "when"): _HISTORY.format(what="AT or BEFORE"),
    (exp.Table, "hints"): "a table takes no hints: leave out WITH (…)",
    (exp.TableAlias, "columns"): "an alias of a table names no columns: write AS name, and rename columns in "
    "the SELECT",
    (
        exp.Join,
        "method",
    ): "{value} JOIN: write JOIN … ON a.column = b.column; of two streams JOIN … WITHIN 10 MINUTES ON …",
    (exp.Join, "using"): "USING: write ON a.column = b.column",
    (
        exp.Unnest,
        "offset",
    ): "UNNEST has no WITH ORDINALITY: the positions of elements aren't available; leave it out",
    (exp.Group, "rollup"): "ROLLUP: name the columns; coarser answers come from merging",
    (exp.Group, "cube"): "CUBE: name the columns; coarser answers come from merging",
    (exp.Group, "grouping_sets"): "GROUPING SETS: name the columns; coarser answers come from merging",
    (exp.Group, "all"): "GROUP BY ALL: name the columns",
    (exp.Group, "totals"): "TOTALS: name the columns; coarser answers come from merging",
    (exp.Ordered, "with_fill"): "WITH FILL: a window without rows gives no row; leave it out",
    (exp.Limit, "limit_options"): "LIMIT must be a number of rows, without PERCENT or TIES",
    (exp.Limit, "expressions"): "LIMIT … BY: write APPROX_TOP_K(column, k) for the most frequent values",
    **dict.fromkeys(
        ((exp.Star, "except_"), (exp.Star, "replace"), (exp.Star, "rename"), (exp.Star, "ilike")),
        "* EXCEPT: name the columns that are wanted",
    ),
    (exp.CurrentTimestamp, "this"): "CURRENT_TIMESTAMP takes no precision: times are in microseconds",
    **dict.fromkeys(
        ((kind, name) for kind in (exp.Cast, exp.TryCast) for name in ("format", "default", "action")),
        "CAST takes only a type; to use a pattern, write PARSE_TIMESTAMP(text, 'yyyy-MM-dd') or "
        "FORMAT_TIMESTAMP(time, 'yyyy-MM-dd')",
    ),
}
"""What to write in place of an argument that is refused."""


def check_grammar(node: Any, place: str = "query") -> None:
    """Raise `SqlError` for the first part of a tree that is not read.

    `place` is the kind of tree: a ``query``, a ``scalar`` or a ``type``.
    """
    for name, rule in check_arguments(node, place):
        if rule and not isinstance(rule, tuple):
            value = node.args[name]
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, exp.Expr):
                    raise _refused(node, name, value)
                check_grammar(part, rule)


def check_arguments(node: Any, place: str = "query") -> list[tuple[str, Any]]:
    """The set arguments of a node, each with its rule. Raises `SqlError` for an argument that is not read."""
    rules = _GRAMMAR[place].get(type(node))
    if rules is None:
        raise error_at(node, f"{in_words(node)} is not supported here")
    given = [
        (name, value)
        for name, value in node.args.items()
        if not (value is None or value is False or value == [] or value == "")
    ]
    for name, value in given:
        rule = rules.get(name)
        if rule is None or (isinstance(rule, tuple) and str(value).upper() not in rule):
            raise _refused(node, name, value)
    return [(name, rules[name]) for name, _ in given]


def in_words(node: Any) -> str:
    """A node's name in SQL.

    >>> in_words(exp.AtTimeZone()), in_words(exp.Select())
    ('AT TIME ZONE', 'SELECT')
    """
    name = _NAMES.get(type(node))
    return name or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


_NAMES: Mapping[type, str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.IntDiv: "DIV",
    exp.RegexpLike: "RLIKE",
    exp.JSONExtractScalar: "->>",
    exp.Tuple: "a row of several values",
    exp.Slice: "a slice of an array",
    exp.Any: "ANY",
    exp.Order: "ORDER BY",
    exp.StrToTime: "CAST … FORMAT",
    exp.JSONPath: "-> before a text in quotes (write m['key'] of a MAP, s->field of a STRUCT)",
    exp.Aliases: "AS (a, b)",
    exp.Var: "a bare word",
    exp.DataTypeParam: "the length or precision of a type",
    exp.Parameter: "a parameter",
    exp.Placeholder: "a parameter",
}


def _refused(node: Any, name: str, value: Any) -> Any:
    """The error for an argument that is not read, at its position."""
    at = next(iter(_nodes(value)), node)
    if isinstance(node, exp.Join):
        at = node.this
    elif isinstance(node, exp.Star):
        at = node
    elif name == "distinct":
        at = node.expressions[0] if node.expressions else node
    instead = _INSTEAD.get((type(node), name))
    word = str(value).upper() if isinstance(value, str) else ""
    if instead is None:
        word = word or name.strip("_").replace("_", " ").upper()
        instead = f"{word} of {in_words(node)} is not supported; leave it out"
    return error_at(at, instead.format(value=word))


def _nodes(value: Any) -> Iterator[Any]:
    return (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr))

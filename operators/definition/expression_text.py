"""Types and expressions as text in our own notation, independent of the installed version of Polars.

Expressions read like the Python that builds them. Another version of Polars may build the same Python
differently, so texts show what changed but decide nothing by themselves (`definition_diff`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

from ...sketches.core.lazy import pl
from ..windows.durations import duration_text
from .expression_tree import OPERATORS, Node, tree_of
from .function_text import functions_of

VERSION = 1
"""The version of this notation for types and expressions."""

_SYMBOLS = {symbol for symbol in OPERATORS.values() if not symbol[0].isalpha()}
_MANY = 20
_KEPT = 1_000
"""The size of each kind of text's cache: most texts recur, and each costs a call to Polars' engine."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_COLUMN = re.compile(rf"\bcol\(({_STRING})\)")
_CONSTANTS = re.compile(
    rf"(\bcol\({_STRING}(?:, {_STRING})*\))|{_STRING}|#[0-9a-f]{{8}}\b|(?<![\w.])-?\d[\d.e+-]*"
)

_OF_THE_MODULE = """
    struct concat_list concat_arr concat_str format coalesce datetime duration arctan2 len repeat
    business_day_count int_range int_ranges date_range date_ranges datetime_range datetime_ranges time_range
    time_ranges linear_space linear_spaces all_horizontal any_horizontal sum_horizontal mean_horizontal
    min_horizontal max_horizontal fold_horizontal reduce_horizontal cum_fold_horizontal
"""
_BARE = frozenset(_OF_THE_MODULE.split())
"""Functions of the Polars module that are not called on a column."""


def type_text(dtype: Any) -> str:
    """A Polars type as text.

    >>> type_text(pl.List(pl.Struct({"at": pl.Datetime("us", "UTC"), "n": pl.Int8})))
    'list[struct[at: datetime[us, UTC], n: int8]]'
    """
    kind = dtype() if isinstance(dtype, type) else dtype
    if isinstance(kind, pl.Struct):
        return f"struct[{', '.join(f'{field.name}: {type_text(field.dtype)}' for field in kind.fields)}]"
    if isinstance(kind, pl.List):
        return f"list[{type_text(kind.inner)}]"
    if isinstance(kind, pl.Array):
        return f"array[{type_text(kind.inner)}, {kind.size}]"
    if isinstance(kind, pl.Datetime):
        return f"datetime[{kind.time_unit}{f', {kind.time_zone}' if kind.time_zone else ''}]"
    if isinstance(kind, pl.Duration):
        return f"duration[{kind.time_unit}]"
    if isinstance(kind, pl.Decimal):
        return f"decimal[{kind.precision or 38}, {kind.scale}]"
    if isinstance(kind, pl.Enum):
        return f"enum{_listed(kind.categories.to_list())}"
    return type(kind).__name__.lower()


def expression_text(expression: pl.Expr) -> str:
    """An expression as text. Raises `Unreadable` for what this version of Polars can't serialise.

    >>> expression_text((pl.col("lang") == "en") & pl.col("tags").list.len().is_between(1, 5))
    '(col("lang") == "en") & col("tags").list.len().is_between(1, 5, closed=both)'
    """
    text = node_text(tree_of(expression))
    return text[1:-1] if text.startswith("(") and _closes(text) == len(text) - 1 else text


def node_text(node: Node, brief: bool = False) -> str:
    """Part of an expression as text; `brief` omits the parameters that aren't expressions."""
    name, inputs = node.name, [node_text(below, brief) for below in node.inputs]
    if name == "col":
        return f"col({_quoted(node.parameters)})"
    if name == "columns":
        return _columns(node.parameters)
    if name == "literal":
        return _literal(node)
    if name == "element":
        return "element()"
    if name == "field":
        return f"field({', '.join(map(_quoted, node.parameters))})"
    if name in _SYMBOLS:
        return f"({inputs[0]} {name} {inputs[1]})"
    if name == "when":
        return f"when({inputs[0]}).then({inputs[1]}).otherwise({inputs[2]})"
    if name == "cast":
        how = node.parameters["options"]
        return f"{inputs[0]}.cast({_cast_type(node)}{'' if how == 'Strict' else f', {_plain(how)}'})"
    if name == "alias":
        return f"{inputs[0]}.alias({_quoted(node.parameters)})"
    if name == "map_batches":
        return f"{inputs[0]}.map({', '.join([*functions_of(node.raw), *inputs[1:]])})"
    arguments = [*inputs[1:], *([] if brief else _parameters(node))]
    if name in _BARE or not inputs:
        return f"{name}({', '.join([*inputs[:1], *arguments])})"
    return f"{inputs[0]}.{name}({', '.join(arguments)})"


def _parameters(node: Node) -> list[str]:
    given = node.parameters
    if given is None or given == {}:
        return []
    if functions := functions_of(given):
        return functions
    if isinstance(given, dict):
        return [f"{key}={_plain(value)}" for key, value in given.items()]
    return [_plain(value) for value in given] if isinstance(given, list) else [_plain(given)]


def _plain(parameter: Any) -> str:
    """A parameter without the wrappers that differ between versions of Polars."""
    if isinstance(parameter, dict) and len(parameter) == 1 and next(iter(parameter)) in ("Literal", "inner"):
        return _plain(next(iter(parameter.values())))
    if isinstance(parameter, dict):
        return "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in parameter.items()) + "}"
    if isinstance(parameter, list):
        return "[" + ", ".join(map(_plain, parameter)) + "]"
    if isinstance(parameter, str):
        return (
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", parameter).lower()
            if parameter.isidentifier()
            else _quoted(parameter)
        )
    return json.dumps(parameter)


def _cast_type(node: Node) -> str:
    without = {name: value for name, value in node.raw["Cast"].items() if name != "expr"}
    text = _cast_type_text(json.dumps(without))
    return _plain(node.parameters["dtype"]) if text is None else text


@lru_cache(_KEPT)
def _cast_type_text(raw: str) -> str | None:
    """The type that a null literal is cast to, in Polars' own text; None if the cast is of anything else."""
    try:
        cast = Node("cast", raw={"Cast": {**json.loads(raw), "expr": tree_of(pl.lit(None)).raw}}).expression()
        return type_text(pl.LazyFrame().select(cast.alias("_")).collect_schema()["_"])
    except Exception:
        return None


def _columns(columns: Any) -> str:
    if columns == "Wildcard":
        return "all()"
    names = columns if isinstance(columns, list) else [columns]
    if all(isinstance(name, str) for name in names):
        return f"col({', '.join(map(_quoted, names))})"
    return f"columns({json.dumps(columns, sort_keys=True)})"


def _literal(node: Node) -> str:
    return _literal_text(json.dumps(node.raw))


@lru_cache(_KEPT)
def _literal_text(raw: str) -> str:
    """A literal as text, from Polars' serialised form."""
    node = Node("literal", raw=json.loads(raw))
    try:
        values = pl.select(node.expression()).to_series()
    except Exception:
        return _plain(node.raw)
    if "Series" not in node.raw["Literal"]:
        return _value(values[0].to_list() if isinstance(values[0], pl.Series) else values[0])
    return _value(values.to_list())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f'bytes("{value.hex()}")'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)}: {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return _listed(value, _value)
    if isinstance(value, timedelta):
        length = value // timedelta(microseconds=1)
        return f'duration("{"-" if length < 0 else ""}{duration_text(abs(length))}")'
    if isinstance(value, datetime | date | time):
        return f'{type(value).__name__}("{value.isoformat()}")'
    return json.dumps(value, default=str)


def _listed(values: Iterable[Any], say: Callable[[Any], str] | None = None) -> str:
    """A list as text; of a long list, its beginning, its length, and a digest of the whole."""
    texts = [(say or _value)(value) for value in values]
    if len(texts) > _MANY:
        digest = sha256(", ".join(texts).encode()).hexdigest()[:8]
        texts = [*texts[:3], f"… {len(texts) - 3} more, #{digest}"]
    return f"[{', '.join(texts)}]"


def _quoted(text: Any) -> str:
    return json.dumps(text, ensure_ascii=False)


def _closes(text: str) -> int:
    """The position where a text's opening bracket is closed; strings may contain brackets."""
    depth = 0
    for match in re.finditer(rf"{_STRING}|[()]", text):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    return len(text)


def skeleton(text: str) -> str:
    """An expression's text with its constants left out.

    >>> skeleton('(col("price") > 5) & (col("lang") == "en")')
    '(col("price") > _) & (col("lang") == _)'
    """
    return _CONSTANTS.sub(lambda match: match[1] or "_", text)


def columns_in(text: str) -> set[str]:
    """The columns that an expression's text names.

    >>> sorted(columns_in('(col("price") > 5) & (col("lang") == "en")'))
    ['lang', 'price']
    """
    return {json.loads(name) for name in _COLUMN.findall(text)}

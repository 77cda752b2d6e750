"""Checks that an expression depends on one row at a time.

Batches of messages may be cut anywhere, so ``pl.col("p").sum()`` or ``.shift()`` would give another result
each time. Polars doesn't expose which expressions are row-wise: its own `is_row_separable` also accepts many
that are not. So this module walks the tree and checks it against a list of allowed calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...sketches.core.lazy import pl
from .expression_text import node_text
from .expression_tree import Node, Unreadable, tree_of
from .row_wise_calls import COLLECTIONS, OF_A_LIST, ROW_WISE, instead_of

_ORDERED = {"<", "<=", ">", ">="}
_CONSTANT_FILLS = {"Zero", "One", "MaxBound", "MinBound"}
_ELEMENTWISE = ("ROW_SEPARABLE", "ElementWise", "APPLY_LIST", "ApplyList")


def check_row_wise(verb: str, expression: pl.Expr, schema: Mapping[str, Any]) -> None:
    """Raise `ValueError` for an expression whose value in one row depends on other rows.

    `verb` names the method it is passed to, `schema` the columns available there.

    >>> prices = {"price": pl.Float64}
    >>> check_row_wise("filter", pl.col("price").round(2) > 1, prices)
    >>> check_row_wise("filter", pl.col("price") > pl.col("price").mean(), prices)
    Traceback (most recent call last):
    ValueError: filter: col("price").mean() depends on other rows, ... as in .agg(price=mean("price"))
    """
    try:
        tree = tree_of(expression)
    except Unreadable as error:
        raise ValueError(
            f"{verb}: Polars {pl.__version__} can't describe the expression ({error}), so streamgauge can't "
            "check that it is row-wise; put it in map_elements or in a decoder, or install a newer Polars"
        ) from None
    _Walk(verb, schema).check(tree, in_list=False)


def reads_columns(expression: pl.Expr) -> bool:
    """Whether an expression names a column: a constant alone has a single value, not one per row.

    >>> reads_columns(pl.lit(5)), reads_columns(pl.col("n") + 5)
    (False, True)
    """
    return any(node.name in ("col", "columns") for node in tree_of(expression).walk())


@dataclass(frozen=True)
class _Walk:
    verb: str
    schema: Mapping[str, Any]

    def check(self, node: Node, in_list: bool) -> None:
        """Raise `ValueError` unless the whole tree is allowed; `in_list`: for elements of a single list."""
        if node.name not in ROW_WISE and not (in_list and node.name in OF_A_LIST):
            raise self._refused(node)
        self._check_parameters(node, in_list)
        for at, below in enumerate(node.inputs):
            if below.name == "literal":
                self._check_literal(node, at, below)
            elif at in COLLECTIONS.get(node.name, ()):
                self.check(below, in_list)
                self._check_collection(node, below)
            else:
                inner = node.name in ("list.eval", "arr.eval") and at == 1
                self.check(below, in_list or inner)
        if not in_list and (node.name in _ORDERED or (node.name == "cast" and _to_number(node))):
            self._check_categories(node)

    def _check_parameters(self, node: Node, in_list: bool) -> None:
        """Check calls that are row-wise only with some parameters."""
        name, given = node.name, node.parameters
        if name == "literal" and "Series" in node.raw["Literal"]:
            raise self._series(node)
        if name == "fill_null_with_strategy" and not in_list and str(given) not in _CONSTANT_FILLS:
            raise self._said(node, "fills from other rows; fill with a value, as in .fill_null(0)")
        if name == "str.strptime":
            if given[1].get("format") is None:
                raise self._said(
                    node,
                    "guesses the format from the first value of a batch; name it, as in "
                    '.str.to_datetime("%Y-%m-%dT%H:%M:%S")',
                )
        elif name == "str.to_decimal" and not (isinstance(given, dict) and "scale" in given):
            raise self._said(node, "guesses the scale from a batch; cast to pl.Decimal(38, 2)")
        elif name == "str.json_decode" and isinstance(given, dict) and given.get("dtype", given) is None:
            raise self._said(
                node,
                "guesses the type from the first values of a batch; name it, as in "
                '.str.json_decode(pl.Struct({"id": pl.Int64}))',
            )
        elif name == "list.to_struct" and "InferWidth" in str(given):
            raise self._said(
                node,
                "counts fields by the lists of a batch; name them, as in "
                '.list.to_struct(fields=["first", "second"])',
            )
        elif name == "map_batches" and not _elementwise(node):
            raise self._said(
                node,
                "receives whole batches, which may be cut anywhere; write .map_elements(function, "
                "return_dtype=...), or .map_batches(function, is_elementwise=True) for one that looks at "
                "each value by itself",
            )

    def _check_literal(self, node: Node, at: int, below: Node) -> None:
        if "Series" in below.raw["Literal"] and at not in COLLECTIONS.get(node.name, ()):
            raise self._series(below)

    def _check_collection(self, node: Node, below: Node) -> None:
        """Check a collection of values: a column other than lists would supply the values of all rows."""
        if isinstance(self._type(below), (pl.List, pl.Array)):
            return
        raise self._said(
            node,
            f"takes all rows of {node_text(below)} at once; write constants, as in [1, 2], or a column of "
            "lists; to compare two columns of a row, write ==",
        )

    def _check_categories(self, node: Node) -> None:
        if any(isinstance(self._type(below), pl.Categorical) for below in node.inputs):
            raise self._said(
                node,
                "depends on the order in which a Categorical's values came; cast it to pl.String or "
                "pl.Enum([...]) first",
            )

    @cached_property
    def _rows(self) -> pl.LazyFrame:
        """An empty frame with the schema, built once: with many columns that takes longer than a query."""
        return pl.LazyFrame(schema=self.schema)

    def _type(self, node: Node) -> pl.DataType | None:
        """The type of part of the expression; None if Polars can't determine it."""
        try:
            return self._rows.select(node.expression().alias("_")).collect_schema()["_"]
        except Exception:
            return None

    def _refused(self, node: Node) -> ValueError:
        column = next((below.parameters for below in node.walk() if below.name == "col"), None)
        instead = instead_of(node.name, column)
        if instead is None:
            return ValueError(
                f"{self.verb}: streamgauge does not know that {node_text(node, brief=True)} is row-wise; put "
                "it in map_elements or in a decoder"
            )
        reason = "depends on other rows, so the result would depend on how messages happen to be batched; "
        return self._said(node, reason + instead)

    def _series(self, node: Node) -> ValueError:
        return self._said(
            node,
            "is a column of its own length; write a constant, as in pl.lit(5), or a list, pl.lit([1, 2])",
        )

    def _said(self, node: Node, what: str) -> ValueError:
        return ValueError(f"{self.verb}: {node_text(node, brief=True)} {what}")


def _elementwise(node: Node) -> bool:
    """Whether a function was declared to treat each value by itself, like those of `map_elements`."""
    options = (node.parameters or {}).get("options", {})
    flags = f"{options.get('flags')} {options.get('collect_groups')}"
    return any(word in flags for word in _ELEMENTWISE)


def _to_number(node: Node) -> bool:
    dtype = str(node.parameters.get("dtype"))
    return any(kind in dtype for kind in ("Int", "Float"))

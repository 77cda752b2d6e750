"""What a Spark column asks for: the function that it calls and what it is given.

PySpark's columns are opaque, but both kinds, those of classic Spark and those of Spark Connect, keep the tree
that they were made of. This reads as much of it as `frames` needs to know `F.window` and `F.sum` when it is
given them; Spark itself still decides what a name or an expression means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column

from .merge.forms import quoted


@dataclass(frozen=True)
class Term:
    """One node of a column's tree: a call of a function, a column's name, a constant, ``*``, text, or other.

    `value` is the function's name in small letters, the column's name as Spark reads it, the constant, or the
    text in SQL.
    """

    kind: Literal["call", "name", "constant", "star", "text", "other"]
    value: Any
    column: Column | None = None
    arguments: tuple[Term, ...] = ()
    distinct: bool = False

    def __str__(self) -> str:
        if self.kind == "call":
            return f"{self.value}({', '.join(map(str, self.arguments))})"
        if self.kind == "other":
            return str(self.column).removeprefix("Column<'").removesuffix("'>")
        return "*" if self.kind == "star" else str(self.value)


def term_of(column: Column) -> Term:
    """The tree of a column, without the names that it is given.

    >>> from pyspark.sql import functions as F
    >>> _ = spark.range(1)    # classic Spark makes columns only once it runs
    >>> found = term_of(F.sum("price").alias("turnover"))
    >>> found.value, found.arguments[0].kind, str(found)
    ('sum', 'name', 'sum(price)')
    """
    # Any other name of an attribute makes a column of the field of that name.
    tree = vars(column).get("_expr")
    return _of_classic(column) if tree is None else _of_connect(tree)


def _of_classic(column: Any) -> Term:
    node = column._jc.node()
    kind = node.getClass().getSimpleName()
    if kind == "Alias":
        return _of_classic(_classic(column, node.child()))
    if kind == "UnresolvedFunction":
        arguments = tuple(_of_classic(_classic(column, one)) for one in _sequence(node.arguments()))
        return Term("call", node.functionName().lower(), column, arguments, node.isDistinct())
    if kind == "UnresolvedAttribute":
        return Term("name", ".".join(map(_quoted, _sequence(node.nameParts()))), column)
    if kind == "Literal":
        return Term("constant", node.value(), column)
    if kind == "SqlExpression":
        return Term("text", node.expression(), column)
    return Term("star" if kind == "UnresolvedStar" else "other", None, column)


def _classic(like: Any, node: Any) -> Any:
    """A column of one node of another's tree."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None and context._jvm is not None
    return type(like)(context._jvm.org.apache.spark.sql.Column(node))


def _sequence(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.size())]


def _of_connect(tree: Any) -> Term:
    from pyspark.sql.connect.column import Column as ConnectColumn

    column: Any = ConnectColumn(tree)
    kind = type(tree).__name__
    if kind == "ColumnAlias":
        return _of_connect(tree._child)
    if kind == "UnresolvedFunction":
        arguments = tuple(map(_of_connect, tree._args))
        return Term("call", tree._name.lower(), column, arguments, tree._is_distinct)
    if kind == "ColumnReference":
        return Term("name", tree._unparsed_identifier, column)
    if kind == "LiteralExpression":
        return Term("constant", tree._value, column)
    if kind == "SQLExpression":
        return Term("text", tree._expr, column)
    return Term("star" if kind == "UnresolvedStar" else "other", None, column)


def _quoted(name: str) -> str:
    return quoted(name) if "." in name or "`" in name else name

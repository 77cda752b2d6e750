"""What a Spark column requests: the function that it calls and its arguments.

PySpark's columns are opaque, but both kinds, those of classic Spark and those of Spark Connect, keep the tree
that they were made of. This reads as much of it as `frames` needs to know `F.window` and `F.sum` when it is
given them, and to know two expressions apart; Spark itself still decides what a name or an expression means.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column

from ..merge.column_codecs import quoted

_PLAIN_NAME = re.compile(r"(?!(?:true|false|null)\Z)[^\W\d]\w*", re.IGNORECASE)
_INTS = range(-(2**31), 2**31)
_SUFFIXES = {"TINYINT": "Y", "SMALLINT": "S", "BIGINT": "L", "FLOAT": "F"}


@dataclass(frozen=True)
class Term:
    """One node of a column's tree: a call of a function, a column's name, a constant, ``*``, text, or other.

    `value` is the function's name in small letters, the column's name as Spark reads it, the constant, the
    text in SQL, or how another node is written around its `arguments`, one for each ``{}``. `type` is the
    constant's in SQL. `reference` tells columns and functions of one name apart for as long as the program
    runs.
    """

    kind: Literal["call", "name", "constant", "star", "text", "other"]
    value: Any
    column: Column | None = None
    arguments: tuple[Term, ...] = ()
    distinct: bool = False
    type: str = ""
    reference: str = ""

    def __str__(self) -> str:
        given = [str(one) for one in self.arguments]
        if self.kind == "call":
            distinct = "distinct " if self.distinct else ""
            return f"{self.value}({distinct}{', '.join(given)})"
        if self.kind == "constant":
            return _written(self.value, self.type)
        if self.kind == "name":
            return ".".join(_plainly(part) for part in name_parts(self.value))
        if self.kind == "other":
            return self.value.format(*given)
        return "*" if self.kind == "star" else str(self.value)

    @property
    def label(self) -> str:
        """The text by which tables of sketches know an expression.

        ``string(x)`` and ``isnotnull(x)`` are what this package makes of decimals and lists, so calls of
        these functions are written otherwise.
        """
        forms = {"string": "CAST({} AS STRING)", "isnotnull": "({} IS NOT NULL)"}
        if self.kind == "call" and self.value in forms and len(self.arguments) == 1:
            return forms[self.value].format(*self.arguments)
        return str(self)

    @property
    def tree(self) -> list[Any]:
        """All that makes two expressions different, as plain JSON; the same whenever the program runs."""
        value = str(self) if self.kind in ("constant", "name") else self.value
        return [self.kind, value, self.type, self.distinct, [one.tree for one in self.arguments]]

    @property
    def identity(self) -> str:
        """Equal for two expressions of one program if they are the same, with the same columns in them."""
        return json.dumps([self.tree, self.references])

    @property
    def references(self) -> list[Any]:
        """The `reference` of each node, in the form of the tree."""
        return [self.reference, *(one.references for one in self.arguments)]


def term_of(column: Column) -> Term:
    """The tree of a column, without the names that it is given.

    >>> from pyspark.sql import functions as F
    >>> _ = spark.range(1)    # classic Spark makes columns only once it runs
    >>> found = term_of(F.sum("price").alias("turnover"))
    >>> found.value, found.arguments[0].kind, str(found)
    ('sum', 'name', 'sum(price)')
    >>> str(term_of(F.concat("a", "b"))), str(term_of(F.concat("a", F.lit("b"))))
    ('concat(a, b)', "concat(a, 'b')")
    """
    # Any other name of an attribute makes a column of the field of that name.
    tree = vars(column).get("_expr")
    return _of_classic(column, {}) if tree is None else _of_connect(tree, {})


def _of_classic(column: Any, variables: dict[str, str]) -> Term:
    node = column._jc.node()
    kind = node.getClass().getSimpleName()

    def of(one: Any) -> Term:
        return _of_classic(_classic(column, one), variables)

    if kind == "Alias":
        return of(node.child())
    if kind == "UnresolvedFunction":
        arguments = tuple(map(of, _sequence(node.arguments())))
        return Term("call", node.functionName().lower(), column, arguments, node.isDistinct())
    if kind == "UnresolvedAttribute":
        planned = str(node.planId().toString())
        reference = "" if planned == "None" else planned
        return Term("name", _joined(_sequence(node.nameParts())), column, reference=reference)
    if kind == "Literal":
        return _classic_literal(column, node)
    if kind == "SqlExpression":
        return Term("text", node.expression(), column)
    if kind == "UnresolvedStar":
        return Term("star", None, column)
    if kind == "LambdaFunction":
        names = [one.name() for one in _sequence(node.arguments())]
        inner = _named_variables(variables, names)
        body = _of_classic(_classic(column, node.function()), inner)
        return _lambda(column, body, [inner[name] for name in names])
    if kind == "UnresolvedNamedLambdaVariable":
        return Term("other", _literally(variables.get(node.name(), node.name())), column)
    if kind == "ExpressionColumnNode":
        # A column of a certain DataFrame, or a Python function; Spark numbers both.
        expression = node.expression()
        reference = str(expression.toString())
        if expression.getClass().getSimpleName() == "AttributeReference":
            return Term("name", _joined([expression.name()]), column, reference=reference)
        return _of_function(column, expression, reference)
    if kind == "Cast":
        tried = "TRY_" if node.evalMode().toString().startswith("Some(") else ""
        return Term("other", f"{tried}CAST({{}} AS {node.dataType().sql()})", column, (of(node.child()),))
    if kind == "CaseWhenOtherwise":
        pairs = [(of(one._1()), of(one._2())) for one in _sequence(node.branches())]
        last = [of(one) for one in _sequence(node.otherwise().toList())]
        return _cases(column, [one for pair in pairs for one in pair], last)
    return _of_product(column, node, of)


def _classic_literal(column: Any, node: Any) -> Term:
    expression = _expression(node)
    kind = expression.dataType().sql()
    value = node.value()
    if not isinstance(value, bool | int | float | str | None):
        value = expression.sql()
    return Term("constant", value, column, type=kind)


def _of_product(column: Any, node: Any, of: Any) -> Term:
    """A node of another kind: its class, and what it is made of, the trees of columns as arguments."""
    arguments: list[Term] = []

    def written(one: Any) -> str:
        if one is None or isinstance(one, str | bool | int | float):
            return _literally(json.dumps(one))
        if _is(one, "org.apache.spark.sql.internal.ColumnNode"):
            arguments.append(of(one))
            return "{}"
        if _is(one, "org.apache.spark.sql.types.DataType"):
            return _literally(one.sql())
        if _is(one, "scala.collection.Seq"):
            return f"[{', '.join(map(written, _sequence(one)))}]"
        if _is(one, "scala.Product") and one.productArity():
            parts = [one.productElement(at) for at in range(one.productArity())]
            return f"{_literally(one.productPrefix())}({', '.join(map(written, parts))})"
        # Objects without contents, such as the order of a sort; their text is another each time.
        return str(one.getClass().getSimpleName()).strip("$")

    parts = [node.productElement(at) for at in range(node.productArity())]
    inner = ", ".join(written(part) for part in parts if not _is_origin(part))
    return Term("other", f"{node.productPrefix()}({inner})", column, tuple(arguments))


def _is(one: Any, name: str) -> bool:
    from py4j.java_gateway import JavaObject, is_instance_of

    return isinstance(one, JavaObject) and is_instance_of(_gateway(), one, name)


def _is_origin(part: Any) -> bool:
    """Whether this is only the place in the program where a column was made."""
    return _is(part, "org.apache.spark.sql.catalyst.trees.Origin")


def _classic(like: Any, node: Any) -> Any:
    """A column of one node of another's tree."""
    return type(like)(_jvm().org.apache.spark.sql.Column(node))


def _expression(node: Any) -> Any:
    """Catalyst's expression of a node, which knows the types of constants."""
    converter = getattr(_jvm().org.apache.spark.sql.classic, "ColumnNodeToExpressionConverter$")
    return getattr(converter, "MODULE$").apply(node)


_WRAPPED = "ColumnNodeExpression"
"""The class of expressions that are columns not yet analysed."""


def _of_function(column: Any, expression: Any, reference: str) -> Term:
    """A Python function and what it is given. Its own text has numbers that are others each time."""
    kind = str(expression.getClass().getSimpleName())
    wrapped = [one for one in _sequence(expression.children()) if one.getClass().getSimpleName() == _WRAPPED]
    arguments = tuple(_of_classic(_classic(column, one.node()), {}) for one in wrapped)
    name = expression.name() if kind in ("PythonUDF", "PythonUDAF") else kind
    places = ", ".join("{}" for _ in arguments)
    return Term("other", f"{_literally(str(name))}({places})", column, arguments, reference=reference)


def _jvm() -> Any:
    return _gateway().jvm


def _gateway() -> Any:
    from pyspark import SparkContext

    assert SparkContext._gateway is not None
    return SparkContext._gateway


def _sequence(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _of_connect(tree: Any, variables: dict[str, str]) -> Term:
    from pyspark.sql.connect.column import Column as ConnectColumn
    from pyspark.sql.connect.expressions import Expression

    column: Any = ConnectColumn(tree)
    kind = type(tree).__name__

    def of(one: Any) -> Term:
        return _of_connect(one, variables)

    if kind == "ColumnAlias":
        return of(tree._child)
    if kind == "UnresolvedFunction":
        return Term("call", tree._name.lower(), column, tuple(map(of, tree._args)), tree._is_distinct)
    if kind == "ColumnReference":
        planned = "" if tree._plan_id is None else str(tree._plan_id)
        return Term("name", tree._unparsed_identifier, column, reference=planned)
    if kind == "LiteralExpression":
        sql = tree._dataType.simpleString().upper()
        plain = isinstance(tree._value, bool | int | float | str | None)
        # Times and dates are numbers there, written as what they are.
        shown = plain and not re.match("DATE|TIME|INTERVAL", sql)
        return Term("constant", tree._value if shown else f"{sql} {tree!r}", column, type=sql)
    if kind == "SQLExpression":
        return Term("text", tree._expr, column)
    if kind == "UnresolvedStar":
        return Term("star", None, column)
    if kind == "LambdaFunction":
        names = [one._name_parts[0] for one in tree._arguments]
        inner = _named_variables(variables, names)
        return _lambda(column, _of_connect(tree._function, inner), [inner[name] for name in names])
    if kind == "UnresolvedNamedLambdaVariable":
        name = tree._name_parts[0]
        return Term("other", _literally(variables.get(name, name)), column)
    if kind == "CastExpression":
        tried = "TRY_" if tree._eval_mode == "try" else ""
        cast = tree._data_type
        sql = (cast if isinstance(cast, str) else cast.simpleString()).upper()
        return Term(
            "other", f"{tried}CAST({{}} AS {_literally(_SQL.get(sql, sql))})", column, (of(tree._expr),)
        )
    if kind == "CaseWhen":
        last = [] if tree._else_value is None else [of(tree._else_value)]
        return _cases(column, [of(one) for pair in tree._branches for one in pair], last)
    arguments: list[Term] = []

    def written(one: Any) -> str:
        if isinstance(one, ConnectColumn):
            one = one._expr
        if isinstance(one, Expression):
            arguments.append(of(one))
            return "{}"
        if isinstance(one, list | tuple):
            return f"[{', '.join(map(written, one))}]"
        return _literally(
            "..." if callable(one) or hasattr(one, "__dict__") else json.dumps(one, default=str)
        )

    parts = ", ".join(written(one) for name, one in sorted(vars(tree).items()) if name != "origin")
    reference = "" if kind in _VALUES else str(id(getattr(tree, "_function", tree)))
    return Term("other", f"{kind}({parts})", column, tuple(arguments), reference=reference)


_SQL = {"INTEGER": "INT", "LONG": "BIGINT", "SHORT": "SMALLINT", "BYTE": "TINYINT"}
"""Spark's other words for types of columns."""

_VALUES = ("UnresolvedExtractValue", "SortOrder", "WithField", "DropField", "CallFunction")
"""Nodes of Connect that hold nothing but what their text says."""


def _cases(column: Any, branches: list[Term], last: list[Term]) -> Term:
    when, otherwise = " WHEN {} THEN {}" * (len(branches) // 2), " ELSE {}" * len(last)
    return Term("other", f"CASE{when}{otherwise} END", column, (*branches, *last))


def _lambda(column: Any, body: Term, variables: list[str]) -> Term:
    return Term("other", f"({_literally(', '.join(variables))} -> {{}})", column, (body,))


def _named_variables(outer: dict[str, str], names: list[str]) -> dict[str, str]:
    """Names for a function's variables without the number that Spark counts up while a program runs."""
    inner = dict(outer)
    for name in names:
        plain = re.sub(r"_\d+\Z", "", name)
        inner[name] = plain if plain not in inner.values() else f"{plain}{len(inner)}"
    return inner


def _written(value: Any, kind: str) -> str:
    """A constant so that none of another type has the same text, nor a column.

    >>> _written(1, "INT"), _written(1, "BIGINT"), _written("1", "STRING"), _written(1.0, "DOUBLE")
    ('1', '1L', "'1'", '1.0')
    """
    if value is None:
        return "NULL" if kind in ("", "VOID") else f"CAST(NULL AS {kind})"
    if kind == "STRING":
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and kind == ("INT" if value in _INTS else "BIGINT"):
        return str(value)
    if isinstance(value, float) and kind == "DOUBLE":
        return repr(value) if math.isfinite(value) else f"{value!r}D"
    return f"{value}{_SUFFIXES.get(kind, '')}"


def _literally(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def name_parts(name: str) -> list[str]:
    """The parts of a name as Spark reads it, without backticks."""
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    return [ticked.replace("``", "`") or plain for ticked, plain in parts]


def _plainly(part: str) -> str:
    return part if _PLAIN_NAME.fullmatch(part) else quoted(part)


def _joined(parts: list[str]) -> str:
    return ".".join(quoted(part) if "." in part or "`" in part else part for part in parts)

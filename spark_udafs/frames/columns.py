"""What a Spark column requests: the function that it calls and its arguments.

PySpark's columns are opaque, but both classic Spark and Spark Connect keep a column's expression tree. This
reads as much of it as `frames` needs to recognise `F.window` and `F.sum`, and to tell two expressions apart;
Spark itself still decides what a name or an expression means.
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
    """One node of a column's tree: a function call, a column name, a constant, ``*``, SQL text, or other.

    `value` is the function's name in lower case, the column's name as Spark parses it, the constant, the SQL
    text, or for another node a template with one ``{}`` for each of its `arguments`. `type` is a constant's
    SQL type. `reference` distinguishes columns and functions of the same name while the program runs.
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
        """The text that identifies an expression in tables of sketches.

        This package itself generates ``string(x)`` for decimals and ``isnotnull(x)`` for lists, so a user's
        calls of these functions get a different text.
        """
        forms = {"string": "CAST({} AS STRING)", "isnotnull": "({} IS NOT NULL)"}
        if self.kind == "call" and self.value in forms and len(self.arguments) == 1:
            return forms[self.value].format(*self.arguments)
        return str(self)

    @property
    def tree(self) -> list[Any]:
        """Everything that distinguishes two expressions, as plain JSON that is stable across program runs."""
        value = str(self) if self.kind in ("constant", "name") else self.value
        return [self.kind, value, self.type, self.distinct, [one.tree for one in self.arguments]]

    @property
    def identity(self) -> str:
        """A value that two expressions of one program share if they are the same and use the same columns."""
        return json.dumps([self.tree, self.references])

    @property
    def references(self) -> list[Any]:
        """The `reference` of each node, nested like the tree."""
        return [self.reference, *(one.references for one in self.arguments)]


def term_of(column: Column) -> Term:
    """Return the tree of a column, without its aliases.

    >>> from pyspark.sql import functions as F
    >>> _ = spark.range(1)    # classic Spark makes columns only once it runs
    >>> found = term_of(F.sum("price").alias("turnover"))
    >>> found.value, found.arguments[0].kind, str(found)
    ('sum', 'name', 'sum(price)')
    >>> str(term_of(F.concat("a", "b"))), str(term_of(F.concat("a", F.lit("b"))))
    ('concat(a, b)', "concat(a, 'b')")
    """
    # Accessing any other attribute would create a column for the field of that name.
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
        # A column bound to a DataFrame, or a Python function; Spark numbers both.
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
    """Describe a node of another kind by its class and contents; columns among these become arguments."""
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
        # Objects without contents, such as a sort order; their text differs each time.
        return str(one.getClass().getSimpleName()).strip("$")

    parts = [node.productElement(at) for at in range(node.productArity())]
    inner = ", ".join(written(part) for part in parts if not _is_origin(part))
    return Term("other", f"{node.productPrefix()}({inner})", column, tuple(arguments))


def _is(one: Any, name: str) -> bool:
    from py4j.java_gateway import JavaObject, is_instance_of

    return isinstance(one, JavaObject) and is_instance_of(_gateway(), one, name)


def _is_origin(part: Any) -> bool:
    """Whether this only records where in the program a column was created."""
    return _is(part, "org.apache.spark.sql.catalyst.trees.Origin")


def _classic(like: Any, node: Any) -> Any:
    """Wrap one node of another column's tree as a column."""
    return type(like)(_jvm().org.apache.spark.sql.Column(node))


def _expression(node: Any) -> Any:
    """Return Catalyst's expression for a node, which has the types of constants."""
    converter = getattr(_jvm().org.apache.spark.sql.classic, "ColumnNodeToExpressionConverter$")
    return getattr(converter, "MODULE$").apply(node)


_WRAPPED = "ColumnNodeExpression"
"""The class of expressions that wrap a column before analysis."""


def _of_function(column: Any, expression: Any, reference: str) -> Term:
    """Describe a call of a Python function; its own text contains numbers that change from run to run."""
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
        # Times and dates are numbers there; write them as times and dates.
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
"""Synonyms of SQL types, with the names that Spark writes."""

_VALUES = ("UnresolvedExtractValue", "SortOrder", "WithField", "DropField", "CallFunction")
"""Nodes of Connect that their text describes completely."""


def _cases(column: Any, branches: list[Term], last: list[Term]) -> Term:
    when, otherwise = " WHEN {} THEN {}" * (len(branches) // 2), " ELSE {}" * len(last)
    return Term("other", f"CASE{when}{otherwise} END", column, (*branches, *last))


def _lambda(column: Any, body: Term, variables: list[str]) -> Term:
    return Term("other", f"({_literally(', '.join(variables))} -> {{}})", column, (body,))


def _named_variables(outer: dict[str, str], names: list[str]) -> dict[str, str]:
    """Return names for a lambda's variables without the counter that Spark appends to them."""
    inner = dict(outer)
    for name in names:
        plain = re.sub(r"_\d+\Z", "", name)
        inner[name] = plain if plain not in inner.values() else f"{plain}{len(inner)}"
    return inner


def _written(value: Any, kind: str) -> str:
    """Write a constant so that its text differs from those of other types and from column names.

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


_ANSWERED_BY_SPARK = {
    *("current_date", "current_time", "current_timestamp", "localtimestamp"),
    *("current_user", "session_user", "user", "grouping__id"),
}
"""Names that Spark resolves to functions, even without parentheses, if no column has them."""


def answered_names(text: str) -> list[str]:
    """Return the names in SQL that Spark would resolve to functions of its own unless they are columns.

    Function calls, fields, aliases after AS and a lambda's variables are left out.

    >>> answered_names("concat(user, page, 'user', current_date(), visit.user)")
    ['user']
    >>> answered_names("transform(tags, user -> user + 1) AS user")
    []
    """
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError
    from sqlglot.tokens import TokenType

    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:
        return []  # Spark's own parser reports the problem
    kinds = [None, *(one.token_type for one in tokens), None]
    bound = {one.text for one, after in zip(tokens, kinds[2:]) if after == TokenType.ARROW}
    if TokenType.ARROW in kinds:  # (one, other) -> ...
        before = tokens[: kinds.index(TokenType.ARROW) - 1]
        bound |= {one.text for one in before if before[-1].token_type == TokenType.R_PAREN}
    return [
        one.text
        for one, before, after in zip(tokens, kinds, kinds[2:])
        if one.text.lower() in _ANSWERED_BY_SPARK
        and one.text not in bound
        and one.token_type != TokenType.STRING
        and before not in (TokenType.DOT, TokenType.ALIAS)
        and after not in (TokenType.DOT, TokenType.L_PAREN)
    ]


def name_parts(name: str) -> list[str]:
    """Split a name into its parts as Spark does, without backticks."""
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    return [ticked.replace("``", "`") or plain for ticked, plain in parts]


def _plainly(part: str) -> str:
    return part if _PLAIN_NAME.fullmatch(part) else quoted(part)


def _joined(parts: list[str]) -> str:
    return ".".join(quoted(part) if "." in part or "`" in part else part for part in parts)

"""A request to a DataFrame: its columns as Spark names them, and Spark's own exact aggregates as ours.

An exact aggregate of Spark's stands in a table of sketches beside the sketches, and is merged with them, by
whichever engine. So it becomes the aggregate of this package that has the same answer:

| Spark's | ours | its column |
|---|---|---|
| `F.count("*")`, `F.count("x")` | `count` | bigint |
| `F.sum` | `sum` | decimal(38, 0) of whole numbers, which doesn't overflow; of others double |
| `F.avg` | `mean` | a struct of count and sum, from which `query` answers the mean |
| `F.min`, `F.max` | `min`, `max` | the type of the values, the widest of its sort |
| `F.variance` | `variance` | a struct, from which `query` answers |

Others can't be merged, or keep every row: they are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import isfunction
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType

from ...operators.definition.aggregate import Aggregate, aggregate
from ...operators.definition.validation import RESERVED
from ..merge.column_codecs import quoted
from ..merge.partials import OWN
from .columns import Term, name_parts, term_of

_OURS = {
    "count": "count",
    "sum": "sum",
    "avg": "mean",
    "mean": "mean",
    "min": "min",
    "max": "max",
    "variance": "variance",
    "var_samp": "variance",
}

_NO_SUCH_COLUMN = ("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND", "INVALID_EXTRACT", "INVALID_ATTRIBUTE_NAME_SYNTAX")


class Columns:
    """The columns of a DataFrame that are needed, by the names that they get where they are sketched."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._names = frame.columns
        sensitive = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
        self._spelled = str if sensitive else str.lower
        self._spellings = {self._spelled(name) for name in self._names}
        self._resolved: dict[str, tuple[Term, Column]] = {}
        self._own: set[str] = set()

    def __getitem__(self, label: str) -> Column:
        return self._resolved[label][1]

    def named(self, name: str, verb: str = "agg") -> str:
        """A column of this name, or a field of one. Raises `ValueError` if there is none."""
        if name in self._names:
            if ("." in name or "`" in name) and self._spark_finds(name):
                raise ValueError(
                    f"{verb}: {name!r} may be a column or a field of one; rename the column, or write "
                    f"{quoted(name)!r} for it"
                )
            self._own.add(name)
            return self._keep(name, _named_term(quoted(name)), F.col(quoted(name)))
        matches = self._spark_finds(name) if self._may_name(name) else []
        if len(matches) != 1:
            raise self._no_column(verb, name)
        own = [known for known in self._names if quoted(known) == name or known.lower() == name.lower()]
        if own:
            return self._keep(own[0], _named_term(quoted(own[0])), F.col(quoted(own[0])))
        return self._keep(name, _named_term(name), F.col(name))

    def key(self, key: str | Column) -> str:
        """The name that Spark gives a key; it stands for that key from now on."""
        if isinstance(key, str):
            label = self.named(key, "groupBy")
            if key == label and self.own(label):
                return label
            # As Spark names it: the field of a struct by its own name, a column in the case of the question.
            term, column = self._resolved[label]
        else:
            term, column = self._term(key, "groupBy"), key
        matches = self._spark_finds(key)
        if len(matches) != 1:
            names = ", ".join(self._names)
            raise ValueError(f"groupBy: {key} is not one column; the DataFrame has {names}")
        return self._keep(matches[0], term, column)

    def own(self, label: str) -> bool:
        """Whether a label is the name of a column of the DataFrame and stands for that."""
        return label in self._own

    def made(self, column: Column, label: str | None = None) -> str:
        """An expression under a name of its own, which another one of the same text doesn't have."""
        term = self._term(column)
        text = term.label if label is None else label
        label, number = text, 1
        while label in self._names or (
            label in self._resolved and self._resolved[label][0].identity != term.identity
        ):
            number += 1
            label = f"{text} ({number})"
        return self._keep(label, term, column)

    def expressions(self) -> dict[str, Any]:
        """The trees of what is made of columns, by the names that keys and aggregates have for them."""
        return {
            label: term.tree
            for label, (term, _) in self._resolved.items()
            if str(term) != str(_named_term(quoted(label)))
        }

    def _may_name(self, name: str) -> bool:
        """Whether a name can be that of a column, or begin with one.

        Spark has answers of its own for some names that are not columns, such as ``user`` and
        ``current_date``, so a name by itself must be in the schema.
        """
        parts = name_parts(name) or [name]
        return len(parts) > 1 or self._spelled(parts[0]) in self._spellings

    def _no_column(self, verb: str, name: str) -> ValueError:
        return ValueError(f"{verb}: no column {name!r}; the DataFrame has {', '.join(self._names)}")

    def _term(self, column: Column, verb: str = "agg") -> Term:
        return self._of_frame(term_of(column), verb)

    def _of_frame(self, term: Term, verb: str) -> Term:
        """A tree in which columns that this DataFrame has once are known by their names alone."""
        if term.kind == "name" and not self._may_name(term.value):
            raise self._no_column(verb, term.value)
        known = term.kind == "name" and self.is_unique(term)
        inner = tuple(self._of_frame(one, verb) for one in term.arguments)
        return replace(term, reference="" if known else term.reference, arguments=inner)

    def is_unique(self, term: Term) -> bool:
        """Whether a name is that of exactly one column of the DataFrame."""
        return sum(str(_named_term(quoted(name))) == str(term) for name in self._names) == 1

    def _keep(self, label: str, term: Term, column: Column) -> str:
        known, _ = self._resolved.setdefault(label, (term, column))
        if known.identity != term.identity:
            raise ValueError(
                f"groupBy: {label!r} is {known} for one purpose and {term} for another; give the key "
                "another name with alias(...)"
            )
        return label

    def _spark_finds(self, column: str | Column) -> list[str]:
        """The names of the columns that Spark finds by a name, none if there is no such column."""
        try:
            with _unlogged():
                return self._frame.select(column).columns
        except AnalysisException as error:
            if isinstance(column, str) and any(condition in str(error) for condition in _NO_SUCH_COLUMN):
                return []
            raise


def _named_term(name: str) -> Term:
    return Term("name", name)


@contextmanager
def _unlogged() -> Iterator[None]:
    """Asks Spark without its log of errors: that there is no such column may be the answer hoped for."""
    log = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@dataclass(frozen=True)
class FrameRequest:
    """The keys and aggregates of a table, and the columns they are made of."""

    columns: Columns
    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        keys: Sequence[str | Column],
        aggregates: Mapping[str, Aggregate | Column],
    ) -> FrameRequest:
        """Raises `ValueError` and `TypeError` as `Sketching.agg` says."""
        if not aggregates:
            raise ValueError('agg: no aggregate was given; name one, such as users=distinct("user")')
        columns = Columns(frame)
        named = tuple(map(columns.key, keys))
        _check_names(frame, named, aggregates)
        requested = {
            name: _ours(columns, frame, name, one)
            if isinstance(one, Column)
            else _named(columns, frame, name, one)
            for name, one in aggregates.items()
        }
        request = cls(columns, named, requested)
        for name in {*request.names(), *aggregates} & {*OWN}:
            raise ValueError(f"agg: {name!r} is what this package calls a column of its own; rename yours")
        return request

    def names(self) -> list[str]:
        """The names of the columns that are needed, keys first."""
        names = [*self.keys, *(column for one in self.aggregates.values() for column in one.columns)]
        return list(dict.fromkeys(names))

    def own(self) -> bool:
        """Whether these are columns of the DataFrame under their own names, to which others can be added.

        Beside samples the names that begin with two underscores are reserved.
        """
        if any(aggregate.name == "sample" for aggregate in self.aggregates.values()):
            return False
        names = self.names()
        return bool(names) and all(map(self.columns.own, names))


def _check_names(frame: DataFrame, keys: Sequence[str], names: Iterable[str]) -> None:
    """Raise `ValueError` for names that Spark takes as the same, and for keys that every table has."""
    for name in keys:
        if name in RESERVED:
            raise ValueError(
                f"groupBy: every table of sketches has a column {name!r} of its own; group by "
                f'F.col({name!r}).alias("another name")'
            )
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    seen: dict[str, str] = {name: name for name in RESERVED}
    for name in (*keys, *names):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            verb = "groupBy" if name in keys else "agg"
            raise ValueError(f"{verb}: Spark takes {name!r} and {other!r} as one name; choose another")


def _named(columns: Columns, frame: DataFrame, name: str, requested: Any) -> Aggregate:
    """An aggregate of columns by the names they have in the DataFrame; decimals as what it can count."""
    if not isinstance(requested, Aggregate):
        shown = f"the function {requested.__name__}" if isfunction(requested) else repr(requested)
        raise TypeError(
            f'agg: {name!r} is {shown}; ask for an aggregate, such as distinct("user"), or F.sum("price")'
        )
    column = requested.column
    if column is not None:
        column = _countable(columns, frame, requested, columns.named(column))
    inputs = {given: columns.named(name) for given, name in requested.inputs.items()}
    return replace(requested, column=column, inputs=inputs)


def _countable(columns: Columns, frame: DataFrame, aggregate: Aggregate, column: str) -> str:
    """The column, or its text where it holds decimals and the aggregate takes none."""
    if aggregate.family.exact or not isinstance(leaf := _leaf(_type(frame, columns, column)), DecimalType):
        return column
    if takes(aggregate, pa.decimal128(leaf.precision, leaf.scale)):
        return column
    given = columns[column]
    nested = isinstance(_type(frame, columns, column), ArrayType)
    text = F.transform(given, lambda one: _text(one, leaf)) if nested else _text(given, leaf)
    return columns.made(text, f"string({column})")


def takes(aggregate: Aggregate, kind: pa.DataType) -> bool:
    """Whether an aggregate takes values of this type."""
    try:
        aggregate.family.of_column(kind)
    except TypeError:
        return False
    return True


_PLAIN = 6
"""Decimal places up to which Spark never writes a decimal with an exponent."""


def _text(column: Column, kind: DecimalType) -> Column:
    """A decimal's digits; a cast to text writes small ones as 1E-7 unless the session's mode is ANSI."""
    if kind.scale <= _PLAIN:
        return column.cast("string")
    return F.call_function("format_number", column, F.lit(f"0.{'0' * kind.scale}"))


def _type(frame: DataFrame, columns: Columns, label: str) -> DataType:
    # The DataFrame's own schema is there already; anything else has to be analysed.
    schema = frame.schema if columns.own(label) else frame.select(columns[label].alias(label)).schema
    return schema[label].dataType


def _leaf(kind: DataType) -> DataType:
    while isinstance(kind, ArrayType):
        kind = kind.elementType
    return kind


def _ours(columns: Columns, frame: DataFrame, name: str, requested: Column) -> Aggregate:
    """The aggregate that has the answer of Spark's."""
    called = term_of(requested)
    if called.kind != "call" or called.value not in _OURS or len(called.arguments) != 1 or called.distinct:
        many = called.distinct or called.value in ("approx_count_distinct", "hll_sketch_agg")
        instead = f"ask for streamgauge.distinct({_argument(called)}), or " if many else ""
        if called.kind == "name":
            raise TypeError(
                f"agg: {name!r} is the column {called}; ask for an aggregate of it, such as "
                f'distinct("{called}")'
            )
        if called.kind == "text":
            raise TypeError(
                f'agg: {name!r} is the text "{called}"; write it with pyspark.sql.functions: F.sum("price")'
            )
        raise TypeError(
            f"agg: {name!r} is {called}, which can't be stored in a table of sketches; {instead}take "
            "F.count, F.sum, F.avg, F.min, F.max or F.variance, or aggregate the DataFrame by itself for it"
        )
    (given,) = called.arguments
    if given.kind == "star" or (given.kind == "constant" and given.value is not None):
        if called.value != "count":
            raise TypeError(f"agg: {name!r} is {called}, of no column; name one")
        return aggregate("count", None)
    label = _label(columns, given)
    if isinstance(_type(frame, columns, label), ArrayType):
        # An aggregate of ours takes lists apart; Spark's counts a list as one value.
        if called.value != "count":
            raise TypeError(f"agg: {name!r} is {called} of lists; explode {label!r} first")
        known = F.when(columns[label].isNotNull(), F.lit(True))
        label = columns.made(known, f"isnotnull({label})")
    return aggregate(_OURS[called.value], label)


def _label(columns: Columns, given: Term) -> str:
    if given.kind == "name" and (not given.reference or columns.is_unique(given)):
        return columns.named(given.value)
    if given.kind == "text" and columns.is_unique(Term("name", quoted(given.value))):
        return columns.named(quoted(given.value))
    assert given.column is not None
    return columns.made(given.column)


def _argument(called: Term) -> str:
    return str(called.arguments[0]) if called.arguments else "..."

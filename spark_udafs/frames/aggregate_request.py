"""A request to a DataFrame: its columns as Spark names them, and Spark's own exact aggregates as ours.

A table of sketches can contain Spark's exact aggregates as well, and any engine can merge them. So each is
replaced by the aggregate of this package that has the same answer:

| Spark's | ours | its column |
|---|---|---|
| `F.count("*")`, `F.count("x")`, `F.count_if` | `count` | bigint |
| `F.sum` | `sum` | decimal(38, 0) of whole numbers, which doesn't overflow; of others double |
| `F.avg` | `mean` | a struct of count and sum, from which `query` answers the mean |
| `F.min`, `F.max` | `min`, `max` | the type of the values, the widest of its sort |
| `F.bool_and`, `F.bool_or` | `min`, `max` | boolean |
| `F.variance`, `F.stddev` | `variance` | a struct, from which `query` answers |
| `F.min_by`, `F.max_by` over the window's time | `first`, `last` | a struct of the value and its moment |

All others are refused, because they can't be merged or would have to store every row.
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
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from ...operators.definition.aggregate import Aggregate, aggregate
from ...operators.definition.validation import RESERVED
from ..merge.column_codecs import quoted
from ..merge.partials import OWN
from .columns import Term, answered_names, name_parts, term_of
from .declared import DeclaredFrame

_OURS = {
    "count": "count",
    "sum": "sum",
    "avg": "mean",
    "mean": "mean",
    "min": "min",
    "max": "max",
    "variance": "variance",
    "var_samp": "variance",
    "stddev": "variance",
    "std": "variance",
    "stddev_samp": "variance",
    "bool_and": "min",
    "every": "min",
    "bool_or": "max",
    "some": "max",
    "any": "max",
    "count_if": "count",
}
_ROOTS = ("stddev", "std", "stddev_samp")
_BY_TIME = {"min_by": "first", "max_by": "last"}
_INSTEAD = {
    "stddev_pop": "use F.stddev, the standard deviation of a sample",
    "var_pop": "use F.variance, the variance of a sample",
    **dict.fromkeys(
        ("percentile_approx", "approx_percentile", "percentile", "median", "percentile_cont"),
        "use streamgauge.quantiles({})",
    ),
    **dict.fromkeys(("mode", "approx_top_k"), "use streamgauge.top_k({})"),
    **dict.fromkeys(("collect_list", "any_value"), "use streamgauge.sample({})"),
    **dict.fromkeys(
        ("approx_count_distinct", "hll_sketch_agg", "collect_set"), "use streamgauge.distinct({})"
    ),
    **dict.fromkeys(
        ("first", "first_value"), "use streamgauge.first({}), which goes by event time, with a window"
    ),
    **dict.fromkeys(
        ("last", "last_value"), "use streamgauge.last({}), which goes by event time, with a window"
    ),
    **dict.fromkeys(
        ("min_by", "max_by"),
        "order by the time of the window, of which a table keeps the first and the last value",
    ),
}
"""Replacements to suggest for Spark's aggregates that a table of sketches can't contain."""

_NO_SUCH_COLUMN = ("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND", "INVALID_EXTRACT", "INVALID_ATTRIBUTE_NAME_SYNTAX")


class Columns:
    """The columns of a DataFrame that are needed, by the names under which they are sketched."""

    def __init__(self, frame: DataFrame | DeclaredFrame) -> None:
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
        """Resolve the name of a column, or of a field in one. Raises `ValueError` if it doesn't exist."""
        if name in self._names:
            if ("." in name or "`" in name) and self._spark_finds(name):
                raise ValueError(
                    f"{verb}: {name!r} is ambiguous: it is a column, and a field of another one; rename the "
                    f"column, or write {quoted(name)!r} for it"
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
        """Return the name that Spark gives a key, which from now on stands for that key."""
        if isinstance(key, str):
            label = self.named(key, "groupBy")
            if key == label and self.own(label):
                return self._as_text(label, self._frame.schema[label].dataType)
            # Named as Spark does: a struct's field by its own name, a column as the caller spelled it.
            term, column = self._resolved[label]
        else:
            term, column = self._term(key, "groupBy"), key
        matches = self._spark_finds(key)
        if len(matches) != 1:
            names = ", ".join(self._names)
            raise ValueError(f"groupBy: {key} is not one column; the DataFrame has {names}")
        self._keep(matches[0], term, column)
        return self._as_text(matches[0], self._frame.select(column).schema[0].dataType)

    def _as_text(self, key: str, kind: DataType) -> str:
        """Turn a struct or an array into its JSON text, so that it can be a key; leave other keys unchanged.

        Raises `TypeError` for types in which equal values can have different texts: floats (0.0 and −0.0)
        and maps.
        """
        if not isinstance(kind, StructType | ArrayType):
            return key
        if (inexact := _inexact(kind)) is not None:
            raise TypeError(
                f"groupBy: {key!r} is {kind.simpleString()}; a key can hold {inexact} only by itself: take "
                "the fields or elements that are keys"
            )
        term, column = self._resolved.pop(key)
        self._own.discard(key)
        return self._keep(key, Term("call", "to_json", arguments=(term,)), F.to_json(column, _AS_KEYS))

    def own(self, label: str) -> bool:
        """Whether a label is the name of the DataFrame's column that it stands for."""
        return label in self._own

    def time(self, time: str | Column) -> str:
        """Resolve the windows' time: a column of this name, or an expression."""
        return self.named(time, "groupBy") if isinstance(time, str) else self.made(time)

    def made(self, column: Column, label: str | None = None) -> str:
        """Add an expression under a unique name, even if another expression has the same text."""
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
        """Return the trees of expressions, by the names that keys and aggregates use for them."""
        return {
            label: term.tree
            for label, (term, _) in self._resolved.items()
            if str(term) != str(_named_term(quoted(label)))
        }

    def _may_name(self, name: str) -> bool:
        """Whether a name is, or begins with, the name of a column.

        Spark resolves some names that are not columns, such as ``user`` and ``current_date``, to functions,
        so a name without a dot must be in the schema.
        """
        parts = name_parts(name) or [name]
        return len(parts) > 1 or self._spelled(parts[0]) in self._spellings

    def _no_column(self, verb: str, name: str) -> ValueError:
        return ValueError(f"{verb}: no column {name!r}; the DataFrame has {', '.join(self._names)}")

    def _term(self, column: Column, verb: str = "agg") -> Term:
        return self._of_frame(term_of(column), verb)

    def _of_frame(self, term: Term, verb: str) -> Term:
        """Return the tree without references to columns whose names are unique in this DataFrame."""
        if term.kind == "name" and not self._may_name(term.value):
            raise self._no_column(verb, term.value)
        if term.kind == "text":
            for name in answered_names(term.value):
                if not self._may_name(name):
                    raise ValueError(
                        f"{self._no_column(verb, name)}; if you mean Spark's own function, write {name}()"
                    )
        known = term.kind == "name" and self.is_unique(term)
        inner = tuple(self._of_frame(one, verb) for one in term.arguments)
        return replace(term, reference="" if known else term.reference, arguments=inner)

    def is_unique(self, term: Term) -> bool:
        """Whether exactly one column of the DataFrame has this name."""
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
        """Return the names of the columns to which Spark resolves a name; empty if there is none."""
        try:
            with _unlogged():
                return self._frame.select(column).columns
        except AnalysisException as error:
            if isinstance(column, str) and any(condition in str(error) for condition in _NO_SUCH_COLUMN):
                return []
            raise


_AS_KEYS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How keys are written as JSON: different keys get different texts, the same in every session."""


def _inexact(kind: DataType) -> str | None:
    """Return what in a struct or an array has ambiguous text or none; None if every value has one text."""
    if isinstance(kind, StructType):
        inner: list[DataType] = [field.dataType for field in kind]
    elif isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, FloatType | DoubleType | MapType | VariantType):
        return f"a {kind.simpleString().partition('<')[0]}"
    elif isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        return f"a string with the collation {kind.collation}"
    else:
        return None
    return next((one for one in map(_inexact, inner) if one is not None), None)


def _named_term(name: str) -> Term:
    return Term("name", name)


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence Spark's error log for a query that may well fail because a column doesn't exist."""
    log = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@dataclass(frozen=True)
class FrameRequest:
    """The keys and aggregates of a table, and the columns that they need."""

    columns: Columns
    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    time: str | None = None

    @classmethod
    def of(
        cls,
        frame: DataFrame | DeclaredFrame,
        keys: Sequence[str | Column],
        aggregates: Mapping[str, Aggregate | Column],
        time: str | Column | None = None,
    ) -> FrameRequest:
        """Resolve a request; `time` is the windows' time. Raises what `Sketching.agg` raises."""
        if not aggregates:
            raise ValueError('agg: no aggregate was given; name one, such as users=distinct("user")')
        columns = Columns(frame)
        named = tuple(map(columns.key, keys))
        _check_names(frame, named, aggregates)
        timed = time if time is None else columns.time(time)
        requested = {
            name: _ours(columns, frame, name, one, timed)
            if isinstance(one, Column)
            else _named(columns, frame, name, one)
            for name, one in aggregates.items()
        }
        request = cls(columns, named, requested, timed)
        for name in {*request.names(), *aggregates} & {*OWN}:
            raise ValueError(f"agg: {name!r} is reserved for a column of streamgauge's own; rename yours")
        return request

    def names(self) -> list[str]:
        """The names of the needed columns, keys first."""
        names = [*self.keys, *(column for one in self.aggregates.values() for column in one.columns)]
        return list(dict.fromkeys(names))

    def own(self) -> bool:
        """Whether these are columns of the DataFrame under their own names, so that others can be added.

        If there are samples, names that begin with two underscores are reserved.
        """
        if any(aggregate.name == "sample" for aggregate in self.aggregates.values()):
            return False
        names = self.names()
        return bool(names) and all(map(self.columns.own, names))


def _check_names(frame: DataFrame | DeclaredFrame, keys: Sequence[str], names: Iterable[str]) -> None:
    """Raise `ValueError` for names that Spark considers the same, and for keys that every table has."""
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
            raise ValueError(f"{verb}: Spark treats {name!r} and {other!r} as the same name; choose another")


def _named(columns: Columns, frame: DataFrame | DeclaredFrame, name: str, requested: Any) -> Aggregate:
    """Return an aggregate with the DataFrame's names for its columns, and decimals as values it can count."""
    if not isinstance(requested, Aggregate):
        shown = f"the function {requested.__name__}" if isfunction(requested) else repr(requested)
        raise TypeError(
            f'agg: {name!r} is {shown}, which is not an aggregate; write one, such as distinct("user"), or '
            'F.sum("price")'
        )
    column = requested.column
    if column is not None:
        column = _countable(columns, frame, requested, columns.named(column))
    inputs = {given: columns.named(name) for given, name in requested.inputs.items()}
    return replace(requested, column=column, inputs=inputs)


def _countable(columns: Columns, frame: DataFrame | DeclaredFrame, aggregate: Aggregate, column: str) -> str:
    """Return the column, or its text if it holds decimals and the aggregate doesn't accept them."""
    if aggregate.family.exact or not isinstance(leaf := _leaf(_type(frame, columns, column)), DecimalType):
        return column
    if takes(aggregate, pa.decimal128(leaf.precision, leaf.scale)):
        return column
    given = columns[column]
    nested = isinstance(_type(frame, columns, column), ArrayType)
    text = F.transform(given, lambda one: _text(one, leaf)) if nested else _text(given, leaf)
    return columns.made(text, f"string({column})")


def takes(aggregate: Aggregate, kind: pa.DataType) -> bool:
    """Whether an aggregate accepts values of this type."""
    try:
        aggregate.family.of_column(kind)
    except TypeError:
        return False
    return True


_PLAIN = 6
"""The number of decimal places up to which Spark never writes a decimal with an exponent."""


def _text(column: Column, kind: DecimalType) -> Column:
    """Write a decimal's digits; a cast writes small ones as 1E-7 unless the session is in ANSI mode."""
    if kind.scale <= _PLAIN:
        return column.cast("string")
    return F.call_function("format_number", column, F.lit(f"0.{'0' * kind.scale}"))


def _type(frame: DataFrame | DeclaredFrame, columns: Columns, label: str) -> DataType:
    # The DataFrame's own schema is already known; anything else has to be analysed.
    return (
        frame.schema[label].dataType
        if columns.own(label)
        else frame.select(columns[label]).schema[0].dataType
    )


def _leaf(kind: DataType) -> DataType:
    while isinstance(kind, ArrayType):
        kind = kind.elementType
    return kind


def _ours(
    columns: Columns, frame: DataFrame | DeclaredFrame, name: str, requested: Column, time: str | None = None
) -> Aggregate:
    """Return the aggregate with the same answer as Spark's; `time` is the windows' time."""
    called = term_of(requested)
    if called.kind == "call" and called.value in _BY_TIME and len(called.arguments) == 2:
        value, by = called.arguments
        if by.kind == "name" and time is not None and columns.named(by.value) == time:
            return aggregate(_BY_TIME[called.value], _label(columns, value))
    if called.kind != "call" or called.value not in _OURS or len(called.arguments) != 1 or called.distinct:
        if called.kind == "name":
            raise TypeError(
                f"agg: {name!r} is the column {called}; write an aggregate of it, such as "
                f'distinct("{called}")'
            )
        if called.kind == "text":
            raise TypeError(
                f'agg: {name!r} is the text "{called}"; write it with pyspark.sql.functions: F.sum("price")'
            )
        instead = "use streamgauge.distinct({})" if called.distinct else _INSTEAD.get(called.value)
        if called.distinct and (called.value != "count" or len(called.arguments) > 1):
            instead = None
        other = f"{instead.format(_argument(called))}, or " if instead is not None else ""
        raise TypeError(
            f"agg: {name!r} is {called}, which can't be stored in a table of sketches; {other}use F.count, "
            "F.count_if, F.sum, F.avg, F.min, F.max, F.bool_and, F.bool_or, F.variance or F.stddev, or "
            "aggregate the DataFrame by itself for it"
        )
    (given,) = called.arguments
    if called.value == "count_if":
        assert given.column is not None
        return aggregate("count", columns.made(F.when(given.column, F.lit(True))))
    if given.kind == "star" and called.value != "count":
        raise TypeError(f"agg: {name!r} is {called}, which needs a column; name one")
    if called.value == "count" and (given.kind == "star" or _is_constant(given)):
        return aggregate("count", None)
    label = _label(columns, given)
    if isinstance(_type(frame, columns, label), ArrayType):
        # Our aggregates count a list's elements; Spark's counts a list as one value.
        if called.value != "count":
            raise TypeError(f"agg: {name!r} is {called} of lists; explode {label!r} first")
        known = F.when(columns[label].isNotNull(), F.lit(True))
        label = columns.made(known, f"isnotnull({label})")
    if _OURS[called.value] != called.value and _OURS[called.value] in ("min", "max"):
        kind = _type(frame, columns, label)
        if not isinstance(kind, BooleanType):
            raise TypeError(f"agg: {name!r} is {called} of a {kind.simpleString()}; it takes a condition")
    ours = aggregate(_OURS[called.value], label)
    return replace(ours, params={"root": 2}) if called.value in _ROOTS else ours


def _is_constant(given: Term) -> bool:
    return given.kind == "constant" and given.value is not None


def _label(columns: Columns, given: Term) -> str:
    if given.kind == "name" and (not given.reference or columns.is_unique(given)):
        return columns.named(given.value)
    if given.kind == "text" and columns.is_unique(Term("name", quoted(given.value))):
        return columns.named(quoted(given.value))
    assert given.column is not None
    return columns.made(given.column)


def _argument(called: Term) -> str:
    return str(called.arguments[0]) if called.arguments else "..."

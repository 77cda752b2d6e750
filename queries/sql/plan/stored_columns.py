"""The columns of a stored table that answer a query's aggregates, also for some groups, and as sets.

`COUNT(*) FILTER (WHERE lang = 'en')` is the table's own column, for those groups only;
`THETA_INTERSECTION(a, b)` is a new set, built from two of the table's. Both become additional columns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from sqlglot import exp

from ....operators.definition.aggregate import Aggregate
from ....operators.table.schema import END, START, aggregates_of, keys_of, table_schema
from ....operators.table.windows import declared_windows
from ....sketches.core.values.item_kinds import joint_kind
from ....sketches.theta import Theta
from ..errors import error_at, errors_at
from .aggregates import DISTINCT, RANKED, AggregateCall, aggregate_call

SET_FUNCTIONS: dict[str, Callable[[Theta, Theta], Theta]] = {
    "THETA_UNION": operator.or_,
    "THETA_INTERSECTION": operator.and_,
    "THETA_DIFFERENCE": operator.sub,
}
"""Functions that combine two sets, by Spark's names; each is answered as a count with its bounds."""
ESTIMATE = "THETA_SKETCH_ESTIMATE"
"""Spark's name for the size of a set, which is a set's answer anyway."""


@dataclass
class StoredColumns:
    """The columns of a table from which a query's aggregates are read.

    `calls` are the aggregates by their nodes' ids, each with its column. `filtered` are columns for some
    groups: by the condition's text, the condition, and the table's own column by the new name; `sets` are
    those built from two columns.
    """

    table: str
    aggregates: dict[str, Aggregate]
    calls: dict[int, tuple[str, AggregateCall]] = field(default_factory=dict)
    filtered: dict[str, tuple[Any, dict[str, str]]] = field(default_factory=dict)
    sets: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stored = dict(self.aggregates)

    def resolve(self, parts: Sequence[Any]) -> None:
        """Find the columns of all aggregates in parts of a query. Raises `SqlError` if one has none."""
        for part in parts:
            for node in part.walk(bfs=False):
                if isinstance(node, exp.Anonymous) and node.name.upper() in SET_FUNCTIONS:
                    self._set(node)
                elif isinstance(node, exp.Anonymous) and node.name.upper() == ESTIMATE:
                    if len(node.expressions) != 1:
                        raise error_at(node, f"{ESTIMATE} takes 1 set, got {len(node.expressions)}")
                    name = self._side(node.expressions[0], ESTIMATE)
                    self.calls[id(node)] = name, AggregateCall(node, "distinct_set", None)
                elif id(node) not in self.calls and (one := aggregate_call(node)) is not None:
                    self.calls[id(node)] = self._filtered(node, self._column(one)), one
                    above = node.parent
                    if isinstance(above, exp.Filter):
                        self.calls[id(above)] = self.calls[id(node)]

    def by_name(self, parts: Sequence[Any]) -> dict[int, tuple[str, AggregateCall]]:
        """Aggregates that are called by the names of their columns."""
        inside = {id(below) for node in self._called(parts) for below in node.walk()}
        by_node = {}
        for part in parts:
            for node in part.walk(bfs=False):
                if not isinstance(node, exp.Column) or id(node) in inside:
                    continue
                if fit := [name for name in self._stored if name.lower() == node.name.lower()]:
                    by_node[id(node)] = fit[0], AggregateCall(node, self._stored[fit[0]].name, None)
        return by_node

    def merged(self) -> tuple[str, ...]:
        """The table's own columns that are merged for all groups."""
        made = {*self.sets, *(name for _, names in self.filtered.values() for name in names)}
        used = {name for name, _ in self.calls.values()} | {
            name for one in self.sets.values() for name in one[1:]
        }
        return tuple(name for name in self._stored if name in used - made)

    def _called(self, parts: Sequence[Any]) -> Iterator[Any]:
        return (node for part in parts for node in part.walk() if id(node) in self.calls)

    def _column(self, one: AggregateCall) -> str:
        """The table's column that answers an aggregate: by family and column, or by name."""
        wanted = one.of.name.lower() if isinstance(one.of, exp.Column) else ""
        if one.of is not None and not wanted:
            raise error_at(
                one.node,
                "a stored table can't aggregate an expression: it answers only from the columns that it "
                "has sketched",
            )
        families = next((those for those in (DISTINCT, RANKED) if one.family in those), (one.family,))
        fit = [
            name
            for name, aggregate in self._stored.items()
            if aggregate.name in families and wanted in ((aggregate.column or "").lower(), name.lower())
        ]
        if fit:
            name = next((name for name in fit if self._stored[name].name == one.family), fit[0])
            self._check_options(one, name)
            return name
        known = ", ".join(f"{name}: {kind.name}({kind.column or ''})" for name, kind in self._stored.items())
        raise error_at(
            one.node, f"{self.table} holds no {one.family} of {wanted or 'its rows'}; it has {known}"
        )

    def _check_options(self, one: AggregateCall, name: str) -> None:
        """Raise `SqlError` for an aggregate with other parameters than the table's."""
        stored = {**self._stored[name].params, **self._stored[name].answer}
        for option, node in one.inputs:
            kept = self._stored[name].inputs.get(option, "")
            if node.name.lower() != kept.lower():
                raise error_at(node, f"{self.table} was sketched with the {option} {kept}, got {node.name}")
        for option, value in one.options:
            if option == "k" and one.family == "top_k":
                if not isinstance(value, int) or not 1 <= value <= stored[option]:
                    raise error_at(
                        one.node,
                        f"k must be from 1 to {stored[option]}, as {self.table} has it, got {value}",
                    )
            elif stored.get(option) != value:
                has = f"it has {option} {stored[option]}" if option in stored else f"it has no {option}"
                raise error_at(one.node, f"{self.table} was not sketched with {option} {value}; {has}")

    def _filtered(self, node: Any, column: str) -> str:
        """The column of an aggregate: the table's own, or that of the groups that its FILTER selects."""
        above = node.parent
        if not isinstance(above, exp.Filter):
            return column
        condition = above.expression.this
        _, names = self.filtered.setdefault(condition.sql(), (condition, {}))
        name = f"{column} where {condition.sql()}"
        names[name] = column
        self.aggregates[name] = self._stored[column]
        return name

    def _set(self, node: Any) -> str:
        """The column of a set expression, built after those of its two sets."""
        if id(node) in self.calls:
            return self.calls[id(node)][0]
        function = node.name.upper()
        if len(node.expressions) != 2:
            raise error_at(node, f"{function} takes 2 sets, got {len(node.expressions)}")
        sides = [self._side(one, function) for one in node.expressions]
        left, right = (self.aggregates[name] for name in sides)
        with errors_at(node):
            kind = joint_kind(left.item_kind, right.item_kind, f"{sides[0]} and {sides[1]}", "compare")
        name = str(node.sql())
        self.aggregates[name] = replace(left, item_kind=kind)
        self.sets[name] = function, sides[0], sides[1]
        self.calls[id(node)] = name, AggregateCall(node, "distinct_set", None)
        return name

    def _side(self, node: Any, function: str) -> str:
        inner = node.this if isinstance(node, exp.Filter) else node
        column = ""
        if isinstance(inner, exp.Anonymous) and inner.name.upper() in SET_FUNCTIONS:
            if inner is node:
                return self._set(inner)
        elif isinstance(inner, exp.Column):
            column = next((name for name in self._stored if name.lower() == inner.name.lower()), "")
            if column:
                self.calls[id(inner)] = column, AggregateCall(inner, self._stored[column].name, None)
        elif (one := aggregate_call(inner)) is not None:
            column = self._column(replace(one, family="distinct_set") if one.family in DISTINCT else one)
            self.calls[id(inner)] = column, one
        if not column or self._stored[column].name != "distinct_set":
            what = f"{column} is a {self._stored[column].name}" if column else "got no column of this table"
            raise error_at(
                node,
                f"{function} takes sets, THETA_SKETCH_AGG(column), of a table that holds a distinct_set; "
                f"{what}",
            )
        column = self._filtered(inner, column)
        self.calls[id(inner)] = column, AggregateCall(inner, "distinct_set", None)
        return column


def with_groups_of(
    table: pa.Table, part: pa.Table, names: Mapping[str, str], of_windows: bool
) -> dict[str, pa.Array]:
    """Columns of some groups aligned with a table of all: by new name, the part's column.

    A group that the part doesn't have is empty there. `of_windows` means that rows belong to windows as well.
    """
    on = [*([START, END] if of_windows else []), *keys_of(table.schema)]
    aggregates = aggregates_of(part.schema)
    if on:
        places = pl.DataFrame(pl.from_arrow(table.select(on))).with_row_index("at")
        rows = pl.DataFrame(pl.from_arrow(part.select(on)))
        at = rows.join(places, on=on, how="left", nulls_equal=True, maintain_order="left")["at"].to_numpy()
    else:
        at = np.zeros(part.num_rows, np.int64)
    columns = {}
    for name, column in names.items():
        groups = aggregates[column].groups(table.num_rows)
        groups.merge(at.astype(np.int64), part.column(column).combine_chunks())
        columns[name] = groups.to_arrow()
    return columns


def set_column(function: str, left: Any, right: Any, one: Aggregate, other: Aggregate) -> pa.Array:
    """The images of sets, each combined from two images in the same row."""
    combine = SET_FUNCTIONS[function]
    images = []
    for first, second in zip(left.to_pylist(), right.to_pylist()):
        sets = (
            Theta(kind.params["lg_k"]) if image is None else Theta.from_bytes(image, kind.params["lg_k"])
            for image, kind in ((first, one), (second, other))
        )
        images.append(combine(*sets).to_bytes())
    return pa.array(images, pa.binary())


def with_columns(
    table: pa.Table, more: Mapping[str, pa.Array], aggregates: Mapping[str, Aggregate]
) -> pa.Table:
    """The table with these additional columns, each with its definition."""
    keys = keys_of(table.schema)
    types = {key: table.schema.field(key).type for key in keys}
    own = aggregates_of(table.schema)
    schema = table_schema(
        types, {**own, **{name: aggregates[name] for name in more}}, declared_windows(table.schema)
    )
    columns = [*(table.column(name) for name in (START, END, *keys, *own)), *more.values()]
    made = [one.cast(part.type) if one.type != part.type else one for one, part in zip(columns, schema)]
    return pa.Table.from_arrays(made, schema=schema)

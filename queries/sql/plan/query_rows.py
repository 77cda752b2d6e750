"""The rows of a query before they are selected or counted, and what their columns are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at, nearest
from ..scalars.scalars import Scalar, Scalars, a_type
from .aggregates import aggregate_call
from .answer_reader import BOUNDS
from .catalog import Relation
from .clauses import WINDOW_COLUMNS
from .draft import Draft, with_columns
from .expressions import Expressions
from .topic_rows import MESSAGE

EXPLODE = ("EXPLODE", "UNNEST")


@dataclass
class Side:
    """A relation of FROM or JOIN: its alias, and its columns' names among the stream's."""

    relation: Relation
    alias: str
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class QueryRows:
    """A stream as it comes into being, and what its columns are called.

    `sides` are the relations of FROM and its joins, `extra` the columns of UNNEST and EXPLODE by lower-case
    names, `exploded` those by the text of the EXPLODE.
    """

    draft: Draft
    sides: list[Side]
    extra: dict[str, str] = field(default_factory=dict)
    exploded: dict[str, str] = field(default_factory=dict)

    def expressions(self) -> Expressions:
        """Those of the rows as they are now."""
        make = Scalars(self.draft.stream.columns)
        return Expressions(
            make,
            lambda node: (
                make.column(self.resolved(node))
                if not self.is_struct_field(node)
                else self._field(make, node)
            ),
            self._no_aggregate,
        )

    def _no_aggregate(self, node: Any) -> Scalar | None:
        if isinstance(node, exp.Anonymous):
            if node.name.upper() in EXPLODE:
                raise error_at(node, f"{node.name.upper()} must stand by itself in the SELECT")
            if node.name.upper() in BOUNDS or aggregate_call(node) is not None:
                raise error_at(
                    node, f"{node.name.upper()} is an aggregate, which must stand in SELECT or HAVING"
                )
        return None

    def is_struct_field(self, node: exp.Column) -> bool:
        """Whether ``a.b`` is a field of the column a."""
        table = node.table.lower()
        return bool(table) and all(side.alias != table for side in self.sides)

    def _field(self, make: Scalars, node: exp.Column) -> Scalar:
        head = node.args["table"]
        column = exp.Column(this=head.copy())
        column.meta.update(node.meta)
        known = [name.lower() for side in self.sides for name in side.columns] + list(self.extra)
        if head.name.lower() not in known:
            aliases = [side.alias for side in self.sides]
            raise error_at(
                node, f"no stream of the query is called {head.name}; {nearest(head.name, aliases)}"
            )
        one = make.column(self.resolved(column))
        return Expressions(make, lambda _: one)._field_of(one, node.name, node)

    def resolved(self, node: exp.Column) -> str:
        """The stream's column that a name means. Raises `SqlError` with the nearest."""
        name, table = node.name, node.table.lower()
        quoted = bool(node.this.args.get("quoted"))
        if not table and name.lower() in self.extra:
            return self.extra[name.lower()]
        sides = [side for side in self.sides if not table or side.alias == table]
        same: dict[str, str] = {}
        for side in sides:
            for known, own in side.columns.items():
                if known == name or (not quoted and known.lower() == name.lower()):
                    same[f"{side.alias}.{known}"] = own
        exact = {key: own for key, own in same.items() if key.rpartition(".")[2] == name}
        same = exact or same
        if len(set(same.values())) > 1:
            raise error_at(node, f"{name} may be {' or '.join(same)}; say which")
        if not same:
            known_names = [one for side in sides for one in side.columns] + list(self.extra.values())
            if name.lower() in WINDOW_COLUMNS:
                raise error_at(node, f"{name} is known once windows close: SELECT it, or filter it in HAVING")
            text = f"; a text stands in single quotes, '{name}'" if quoted else ""
            raise error_at(node, f"no column is called {name}; {nearest(name, known_names)}{text}")
        return next(iter(same.values()))

    def all_columns(self, node: Any) -> dict[str, Scalar]:
        """The columns that ``*`` or ``stream.*`` stands for."""
        make = Scalars(self.draft.stream.columns)
        wanted = node.table.lower() if isinstance(node, exp.Column) else ""
        columns: dict[str, Scalar] = {}
        for side in self.sides:
            if wanted and side.alias != wanted:
                continue
            names = [name for name in side.columns if name.lower() not in MESSAGE]
            columns |= {side.columns[name]: make.column(side.columns[name]) for name in names}
        if not columns:
            raise error_at(node, f"no stream of the query is called {wanted}")
        return columns | {name: make.column(name) for name in self.extra.values()}

    def explode(self, node: Any, name: str) -> None:
        """Make a row of each element of an array, in a column of that name."""
        one = self.expressions().scalar(node)
        if one.kind != "list":
            raise error_at(node, f"EXPLODE takes an ARRAY, got {a_type(one.type)}")
        if not (isinstance(node, exp.Column) and one.expr.meta.output_name() == name):
            with_columns(self.draft, {name: one}, node)
        # Polars gives an empty array a row with a null; in SQL it is none.
        some = pl.col(name).list.len() > 0
        self.draft.then(f".filter(pl.col({name!r}).list.len() > 0)", lambda stream: stream.filter(some), node)
        self.draft.then(f".explode({name!r})", lambda stream: stream.explode(name), node)
        self.extra[name.lower()] = name

    def explode_items(self, items: list[Any]) -> None:
        """Explode what a SELECT says EXPLODE of."""
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Anonymous) and node.name.upper() in EXPLODE:
                if len(node.expressions) != 1:
                    raise error_at(node, f"{node.name.upper()} takes 1 argument, got {len(node.expressions)}")
                self.explode(node.expressions[0], self.output_name(item, {}))
                self.exploded[node.sql()] = self.output_name(item, {})

    def unnest(self, join: Any) -> None:
        """``CROSS JOIN UNNEST(column) AS t(name)``."""
        unnest = join.this
        alias = unnest.args.get("alias")
        named = alias.args.get("columns") if alias is not None else None
        if len(unnest.expressions) != 1 or not (named or alias):
            raise error_at(unnest.expressions[0], "write CROSS JOIN UNNEST(column) AS t(name)")
        name = (named[0] if named else alias.this).name
        self.explode(unnest.expressions[0], name)

    def key_column(self, node: Any) -> str:
        """The column that a part of a join's condition is: a column's own, or a new one."""
        one = self.expressions().scalar(node)
        if isinstance(node, exp.Column) and one.text == f"pl.col({one.expr.meta.output_name()!r})":
            return str(one.expr.meta.output_name())
        name = node.sql()
        with_columns(self.draft, {name: one}, node)
        return str(name)

    def output_name(self, item: Any, taken: Mapping[str, Any]) -> str:
        """The name of a selected column: its alias, the column's, the function's, or its text."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            edge = WINDOW_COLUMNS.get(item.name.lower())
            return edge or item.name
        if isinstance(item, exp.Anonymous):
            name = item.name.lower()
            if name in (*map(str.lower, EXPLODE),) and len(item.expressions) == 1:
                inner = item.expressions[0]
                return inner.name if isinstance(inner, exp.Column) else name
            number, base = 2, name
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            return name
        return str(item.sql())

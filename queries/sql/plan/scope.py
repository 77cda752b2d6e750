"""The rows of a query before they are selected or counted, and the names of their columns."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at, nearest
from ..scalars.scalars import Scalar, Scalars, a_type, type_source
from .aggregates import aggregate_call
from .answer_reader import BOUNDS
from .catalog import Relation
from .clauses import edge_of
from .expressions import Expressions, struct_field
from .stream_builder import StreamBuilder, with_columns
from .topic_reader import MESSAGE

EXPLODE = ("EXPLODE", "UNNEST")


def is_explode(node: Any) -> bool:
    """Whether a part of a query makes a row for each element of an array."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in EXPLODE


def free_name(wanted: str, taken: Container[str]) -> str:
    """The wanted name, or a similar one if it is already used.

    >>> free_name("n", {"n", "n_2"}), free_name("n", {})
    ('n_3', 'n')
    """
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


@dataclass
class Side:
    """A relation of FROM or JOIN: its alias, and its columns' names in the stream.

    The elements of an UNNEST are a side as well, without a `relation`.
    """

    relation: Relation | None
    alias: str
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class Scope:
    """A stream under construction, and the names of its columns.

    Everything that a query computes becomes a column of the stream with a new name (`new_name`), so that no
    alias overwrites a column that is still needed. `sides` are the relations of FROM and its joins,
    `exploded` the columns of EXPLODE by its text, `aliases` the same by the alias in the SELECT.
    """

    builder: StreamBuilder
    sides: list[Side]
    exploded: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def new_name(self, wanted: str) -> str:
        """The name of a new column: the wanted one, or a similar one if it is already used."""
        return free_name(wanted, self.builder.stream.columns)

    def expressions(self) -> Expressions:
        """Expressions over the rows as they are now."""
        make = Scalars(self.builder.columns)
        return Expressions(make, lambda node: self._named(make, node), self._no_aggregate)

    def _no_aggregate(self, node: Any) -> Scalar | None:
        if isinstance(node, exp.Anonymous):
            if node.name.upper() in EXPLODE:
                raise error_at(node, f"{node.name.upper()} must be a column of its own in the SELECT")
            if node.name.upper() in BOUNDS or aggregate_call(node) is not None:
                raise error_at(
                    node, f"{node.name.upper()} is an aggregate, which is allowed only in SELECT and HAVING"
                )
        return None

    def _parts(self, node: exp.Column) -> tuple[str, Any, list[Any]]:
        """The parts of a name: the alias of its stream, empty for any; the column; and fields of it."""
        parts = [node.args[part] for part in ("catalog", "db", "table", "this") if node.args.get(part)]
        if len(parts) > 1 and any(side.alias == parts[0].name.lower() for side in self.sides):
            return parts[0].name.lower(), parts[1], parts[2:]
        return "", parts[0], parts[1:]

    def is_struct_field(self, node: exp.Column) -> bool:
        """Whether ``a.b`` is a field of the column a."""
        return bool(self._parts(node)[2])

    def _named(self, make: Scalars, node: exp.Column) -> Scalar:
        one = make.column(self.resolved(node))
        for part in self._parts(node)[2]:
            one = struct_field(make, one, part.name, node)
        return one

    def resolved(self, node: exp.Column) -> str:
        """The stream's column that a name refers to, without fields. Raises `SqlError` with the nearest."""
        alias, part, fields = self._parts(node)
        name, quoted = part.name, bool(part.args.get("quoted"))
        sides = [side for side in self.sides if not alias or side.alias == alias]
        same: dict[str, str] = {}
        for side in sides:
            for known, own in side.columns.items():
                if known == name or (not quoted and known.lower() == name.lower()):
                    same[f"{side.alias}.{known}"] = own
        exact = {key: own for key, own in same.items() if key.rpartition(".")[2] == name}
        same = exact or same
        if len(set(same.values())) > 1:
            raise error_at(node, f"{name} may be {' or '.join(same)}; say which")
        if same:
            return next(iter(same.values()))
        if not alias and name.lower() in self.aliases:
            return self.aliases[name.lower()]
        if fields:
            aliases = [side.alias for side in self.sides]
            raise error_at(node, f"no stream of the query is called {name}; {nearest(name, aliases)}")
        if edge_of(node):
            raise error_at(
                node, f"{name} is known only after windows have closed: SELECT it, or filter it in HAVING"
            )
        known_names = [one for side in sides for one in side.columns] + list(self.aliases)
        text = f"; strings need single quotes, '{name}'" if quoted else ""
        raise error_at(node, f"no column is called {name}; {nearest(name, known_names)}{text}")

    def all_columns(self, node: Any, taken: Collection[str] = ()) -> dict[str, Scalar]:
        """The columns that ``*`` or ``stream.*`` stands for.

        Columns of ``stream.*`` have their declared names; after a name in `taken`, the stream's is added.
        """
        make = Scalars(self.builder.columns)
        wanted = node.table.lower() if isinstance(node, exp.Column) else ""
        columns: dict[str, Scalar] = {}
        for side in self.sides:
            if wanted and side.alias != wanted:
                continue
            names = [name for name in side.columns if name.lower() not in MESSAGE]
            for name in names:
                own = name if name not in taken else f"{name}_{side.alias}"
                columns[own if wanted else side.columns[name]] = make.column(side.columns[name])
        if not columns:
            raise error_at(node, f"no stream of the query is called {wanted}")
        return columns

    def explode_items(self, items: list[Any]) -> None:
        """Explode the columns in a SELECT's EXPLODE: several side by side, shorter ones filled with nulls."""
        calls: dict[str, tuple[Any, str]] = {}
        aliases: dict[str, str] = {}
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            if is_explode(node):
                if len(node.expressions) != 1:
                    raise error_at(node, f"{node.name.upper()} takes 1 argument, got {len(node.expressions)}")
                calls.setdefault(node.sql(), (node, self.output_name(item, {})))
                aliases[self.output_name(item, {}).lower()] = node.sql()
        calls = {text: call for text, call in calls.items() if text not in self.exploded}
        names = self._lists([node for node, _ in calls.values()], [name for _, name in calls.values()])
        if len(names) > 1:
            self._fill_up(names, [node for node, _ in calls.values()])
        if names:
            # Polars turns an empty array into a row with a null; in SQL there is no row.
            self._drop_empty(names[0], next(iter(calls.values()))[0].expressions[0])
            self._explode(names, next(iter(calls.values()))[0])
        self.exploded |= dict(zip(calls, names))
        self.aliases |= {alias: self.exploded[text] for alias, text in aliases.items()}

    def unnest(self, join: Any) -> None:
        """``CROSS JOIN UNNEST(column) AS t(name)``, and LEFT JOIN, which keeps rows without an element."""
        unnest = join.this
        alias = unnest.args.get("alias")
        named = (alias.args.get("columns") if alias is not None else None) or []
        if len(unnest.expressions) != 1 or alias is None or len(named) > 1 or not (named or alias.this):
            raise error_at(unnest.expressions[0], "write CROSS JOIN UNNEST(column) AS t(name)")
        side, on = join.args.get("side") or "", join.args.get("on")
        if side not in ("", "LEFT"):
            raise error_at(
                unnest.expressions[0], f"{side} JOIN UNNEST: write CROSS JOIN or LEFT JOIN UNNEST(…) ON TRUE"
            )
        if on is not None and not (isinstance(on, exp.Boolean) and on.this):
            raise error_at(on, "UNNEST is joined ON TRUE; put a condition in WHERE")
        called = alias.this.name.lower() if alias.this else ""
        if called and any(one.alias == called for one in self.sides):
            raise error_at(unnest.expressions[0], f"{called} is used as a name twice; write AS another(name)")
        node = unnest.expressions[0]
        name = (named[0] if named else alias.this).name
        (own,) = self._lists([node], [name], "UNNEST")
        if not side:
            self._drop_empty(own, node)
        self._explode([own], node)
        self.sides.append(Side(None, called, {name: own}))

    def _lists(self, calls: list[Any], names: list[str], function: str = "EXPLODE") -> list[str]:
        """New columns with the arrays that are exploded."""
        expressions, own = self.expressions(), []
        columns: dict[str, Scalar] = {}
        for call, wanted in zip(calls, names):
            node = call.expressions[0] if is_explode(call) else call
            one = expressions.scalar(node)
            if one.kind != "list":
                raise error_at(node, f"{function} takes an ARRAY, got {a_type(one.type)}")
            name = free_name(wanted, {**self.builder.stream.columns, **columns})
            own.append(name)
            columns[name] = one
        if columns:
            with_columns(self.builder, columns, calls[0])
        return own

    def _fill_up(self, names: list[str], nodes: list[Any]) -> None:
        """Fill the arrays of each row with nulls to the length of its longest."""
        make = Scalars(self.builder.columns)
        lengths = [make.call(make.call(make.column(name), "list.len"), "fill_null", 0) for name in names]
        longest = make.function("max_horizontal", lengths)
        filled = {}
        for name in names:
            one = make.column(name)
            empty = make.made(pl.lit([], dtype=one.type), f"pl.lit([], dtype={type_source(one.type)})")
            places = make.function("int_ranges", 0, longest)
            filled[name] = make.call(
                make.call(one, "fill_null", empty), "list.gather", places, null_on_oob=True
            )
        with_columns(self.builder, filled, nodes[0])

    def _drop_empty(self, name: str, at: Any) -> None:
        some = pl.col(name).list.len() > 0
        self.builder.then(f".filter(pl.col({name!r}).list.len() > 0)", lambda stream: stream.filter(some), at)

    def _explode(self, names: list[str], at: Any) -> None:
        text = ", ".join(map(repr, names))
        before = self.builder.columns
        self.builder.then(f".explode({text})", lambda stream: stream.explode(*names), at)
        self.builder.note({name: before[name].inner for name in names})

    def key_column(self, node: Any) -> str:
        """The column for a part of a join's condition: a column's own, or a new one."""
        one = self.expressions().scalar(node)
        if isinstance(node, exp.Column) and not self.is_struct_field(node):
            return self.resolved(node)
        name = self.new_name(str(node.sql()))
        with_columns(self.builder, {name: one}, node)
        return name

    def output_name(self, item: Any, taken: Mapping[str, Any]) -> str:
        """The name of a selected column: its alias, the column's, the function's, or its text."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            return edge_of(item) or item.name
        if isinstance(item, exp.Dot | exp.JSONExtract) and isinstance(
            item.expression, exp.Column | exp.Identifier
        ):
            return item.expression.name
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

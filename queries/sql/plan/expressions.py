"""Scalar expressions: converts sqlglot's tree to Polars, against a list of what is supported.

Anything not on the list is an error with its position: a part of a tree without a method here, or a function
that `scalar_functions` doesn't have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time
from math import isinf
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import counted_arguments, error_at, errors_at, nearest
from ..parse.grammar import in_words
from ..parse.nodes import UNITS
from ..scalars import decimals
from ..scalars.array_functions import ARRAY_FUNCTIONS
from ..scalars.function_aliases import unknown_function
from ..scalars.map_functions import map_element
from ..scalars.scalar_functions import FUNCTIONS
from ..scalars.scalars import TIME, Map, Scalar, Scalars, a_type, map_value, of_alike, sql_type
from ..scalars.time_functions import PARTS, in_zone, timestamp_of_text
from ..scalars.types import column_type
from .aggregates import function_names

Resolve = Callable[[Any], Scalar | None]


class Expressions:
    """Converts trees to scalars.

    `column` resolves a column's name, and `special` the caller's own calls, such as aggregates; it returns
    None for others. `now` is the value of NOW(); without one it is refused.
    """

    def __init__(
        self,
        scalars: Scalars,
        column: Callable[[exp.Column], Scalar],
        special: Resolve = lambda node: None,
        now: datetime | None = None,
    ) -> None:
        self.make = scalars
        self._column = column
        self._special = special
        self._now = now

    def scalar(self, node: Any) -> Scalar:
        """The scalar for a tree. Raises `SqlError` for unsupported expressions and wrong types."""
        special = self._special(node)
        if special is not None:
            return special
        method = _METHODS.get(type(node))
        if method is None:
            raise refused(node)
        with errors_at(node):
            made = method(self, node)
            return self.make.call(made, "not_") if node.args.get("negate") else made

    def condition(self, node: Any, where: str) -> Scalar:
        """A scalar that is true, false or null."""
        one = self.scalar(node)
        if one.kind not in ("boolean", "null"):
            raise error_at(node, f"{where} must be a condition, got {a_type(one.type)}")
        return self.make.cast(one, pl.Boolean())

    # Operands

    def _number(self, node: Any, what: str) -> Scalar:
        one = self.scalar(node)
        if one.kind == "null":
            return self.make.cast(one, pl.Int64())
        if one.kind not in ("whole", "number"):
            raise error_at(node, f"{what} takes numbers, got {a_type(one.type)}; write CAST(… AS DOUBLE)")
        return one

    def _arithmetic(self, node: Any) -> Scalar:
        sign = _SIGNS[type(node)]
        sides = node.this, node.expression
        if sign in "+-" and any(isinstance(side, exp.Interval) for side in sides):
            return self._moved(node, sign)
        left, right = self._number(sides[0], sign), self._number(sides[1], sign)
        if decimals.is_decimal(left) or decimals.is_decimal(right):
            return decimals.arithmetic(self.make, left, sign, right)
        return self.make.arithmetic(left, sign, right)

    def _moved(self, node: Any, sign: str) -> Scalar:
        """A time with an INTERVAL added or subtracted."""
        time, interval = node.this, node.expression
        if isinstance(time, exp.Interval):
            time, interval = interval, time
            if sign == "-":
                raise error_at(
                    node, "an INTERVAL can be subtracted from a time, but not a time from an INTERVAL"
                )
        one = self.scalar(time)
        if one.kind != "time":
            raise error_at(
                time, f"an INTERVAL can be added to or subtracted from a TIMESTAMP, got {a_type(one.type)}"
            )
        by = f"{'-' if sign == '-' else ''}{interval_offset(interval)}"
        if isinstance(one.literal, datetime):
            return self.make.literal(pl.select(pl.lit(one.literal).dt.offset_by(by)).item())
        return self.make.call(one, "dt.offset_by", by)

    def _compared(self, node: Any) -> Scalar:
        left, right = self._alike([node.this, node.expression], node)
        sign = _SIGNS[type(node)]
        if sign not in ("==", "!=") and {left.kind, right.kind} & {"list", "struct"}:
            raise error_at(
                node,
                f"{a_type(left.type)} can be compared only with = and <>: compare elements or fields, "
                "a[1] < b[1]",
            )
        return self.make.operator(left, sign, right)

    def _distinct_from(self, node: Any) -> Scalar:
        """A comparison that is never null: NULL is not distinct from NULL."""
        left, right = self._alike([node.this, node.expression], node)
        path = "eq_missing" if isinstance(node, exp.NullSafeEQ) else "ne_missing"
        with errors_at(node):
            left, right = self.make.comparable(left), self.make.comparable(right)
        return self.make.call(left, path, right)

    def _alike(self, nodes: list[Any], at: Any) -> list[Scalar]:
        """Operands that can be compared: numbers, or all of one kind; text compared with a time is parsed."""
        made = [self.scalar(node) for node in nodes]
        kinds = {("whole" if one.kind == "number" else one.kind) for one in made} - {"null"}
        types_of_times = {one.type for one in made if one.kind == "time"}
        if kinds == {"time", "text"} or (kinds == {"time"} and len(types_of_times) > 1):
            made = [self._as_time(one, node) for one, node in zip(made, nodes)]
            kinds = {"time"}
        if kinds == {"clock", "text"}:
            made = [self._clock(one, at) if one.kind == "text" else one for one, at in zip(made, nodes)]
            kinds = {"clock"}
        if len(kinds) > 1:
            types = " with ".join(dict.fromkeys(a_type(one.type) for one in made if one.kind != "null"))
            raise error_at(at, f"{types} can't be compared; write CAST(… AS …) around one of them")
        return self._one_type(made, at)

    def _one_type(self, made: list[Scalar], at: Any) -> list[Scalar]:
        """Numbers as one type, if one of them is a DECIMAL."""
        with errors_at(at):
            return decimals.alike(self.make, made)

    def _as_time(self, one: Scalar, node: Any) -> Scalar:
        if one.kind == "text":
            return self._time_of(one, node)
        return one if one.type == TIME or one.kind == "null" else self.make.cast(one, TIME)

    def _time_of(self, one: Scalar, node: Any) -> Scalar:
        """The time in a text, in UTC; a constant that isn't a time is refused."""
        if not isinstance(one.literal, str):
            return timestamp_of_text(self.make, one)
        time = constant_time(one.literal)
        if time is None:
            raise error_at(node, f"{one.literal!r} must be a time, such as '2026-06-01T12:00:00'")
        return self.make.literal(time)

    def _clock(self, one: Scalar, node: Any) -> Scalar:
        """A text as a TIME; null if it isn't one. A constant that isn't a TIME is refused."""
        if isinstance(one.literal, str):
            try:
                one = self.make.literal(time.fromisoformat(one.literal).isoformat())
            except ValueError:
                raise error_at(node, f"{one.literal!r} must be a time of day, such as '12:30:00'") from None
        whole = self.make.call(one, "str.replace", r"^(\d\d:\d\d)$", "${1}:00")
        return self.make.call(whole, "str.strptime", pl.Time(), "%T%.f", strict=False)

    # Nodes

    def _name(self, node: Any) -> Scalar:
        return self._column(node)

    def _constant(self, node: Any) -> Scalar:
        if node.is_string:
            return self.make.literal(node.this)
        try:
            value: int | float = int(node.this)
        except ValueError:
            value = float(node.this)
            if isinf(value):
                raise error_at(node, f"a number must be less than 1.8e308, got {node.this}") from None
            return replace(self.make.literal(value), digits=node.this)
        if isinstance(value, int) and value >= 2**63:
            raise error_at(node, f"a whole number must be less than 2^63, got {value}; write it with a .0")
        return self.make.literal(value)

    def _boolean(self, node: Any) -> Scalar:
        return self.make.literal(bool(node.this))

    def _null(self, node: Any) -> Scalar:
        return self.make.made(pl.lit(None), "pl.lit(None)")

    def _paren(self, node: Any) -> Scalar:
        return self.scalar(node.this)

    def _negative(self, node: Any) -> Scalar:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            one = self._constant(node.this)
            return replace(self.make.literal(-one.literal), digits=one.digits and f"-{one.digits}")
        one = self._number(node.this, "-")
        if decimals.is_decimal(one):
            return self.make.call(one, "neg")
        return self.make.arithmetic(self.make.literal(0), "-", one)

    def _not(self, node: Any) -> Scalar:
        return self.make.call(self._truth(node.this), "not_")

    def _truth(self, node: Any) -> Scalar:
        """A condition, also for NULL itself."""
        return self.condition(node, "AND, OR and NOT: an operand")

    def _logic(self, node: Any) -> Scalar:
        sign = "&" if isinstance(node, exp.And) else "|"
        return self.make.operator(self._truth(node.this), sign, self._truth(node.expression))

    def _is(self, node: Any) -> Scalar:
        one, what = self.scalar(node.this), node.expression
        if isinstance(what, exp.Null):
            return self.make.call(one, "is_null")
        if isinstance(what, exp.Boolean):
            if one.kind not in ("boolean", "null"):
                raise error_at(node.this, f"IS TRUE takes a condition, got {a_type(one.type)}")
            return self.make.call(self.make.cast(one, pl.Boolean()), "eq_missing", bool(what.this))
        raise error_at(node, "IS must be followed by NULL, NOT NULL, TRUE or FALSE")

    def _in(self, node: Any) -> Scalar:
        """x IN (…): null if x is null, and if no item is equal and one is null."""
        if not node.args.get("query") and not node.expressions:
            raise error_at(node, "IN must have a value between its brackets")
        if node.args.get("query"):
            raise error_at(node, "IN (SELECT …): join the table instead, JOIN … ON")
        one, *items = self._alike([node.this, *node.expressions], node)
        some = [item for item in items if item.kind != "null"]
        values = [item.literal for item in some]
        if len({type(value) for value in values}) == 1 and values[0] is not None and one.kind == some[0].kind:
            result = self.make.call(one, "is_in", values)
        else:
            made = [self.make.operator(one, "==", item) for item in some]
            result = self.make.literal(False) if not made else made[0]
            for other in made[1:]:
                result = self.make.operator(result, "|", other)
        if len(some) < len(items):
            result = self.make.when([(result, self.make.literal(True))], None)
        return result

    def _between(self, node: Any) -> Scalar:
        one, low, high = self._alike([node.this, node.args["low"], node.args["high"]], node)
        between = self._within(one, low, high)
        if not node.args.get("symmetric"):
            return between
        return self.make.operator(between, "|", self._within(one, high, low))

    def _within(self, one: Scalar, low: Scalar, high: Scalar) -> Scalar:
        above, below = self.make.operator(one, ">=", low), self.make.operator(one, "<=", high)
        return self.make.operator(above, "&", below)

    def _escaped(self, node: Any) -> Scalar:
        """x LIKE pattern ESCAPE sign."""
        like, sign = node.this, node.expression
        if not isinstance(like, exp.Like | exp.ILike):
            raise error_at(node, "ESCAPE follows LIKE")
        if not isinstance(sign, exp.Literal) or not sign.is_string or len(sign.this) != 1:
            raise error_at(sign, "ESCAPE takes one character, in single quotes")
        made = self._like(like, sign.this)
        return self.make.call(made, "not_") if like.args.get("negate") else made

    def _like(self, node: Any, escape: str | None = None) -> Scalar:
        pattern = node.expression
        one = self.scalar(node.this)
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise error_at(pattern, "the pattern of LIKE must be a constant text")
        if one.kind != "text":
            raise error_at(node.this, f"LIKE takes text, got {a_type(one.type)}")
        with errors_at(pattern):
            expression = like_expression(pattern.this, escape)
        flags = "(?is)" if isinstance(node, exp.ILike) else "(?s)"
        return self.make.call(one, "str.contains", f"{flags}^{expression}$")

    def _concatenated(self, node: Any) -> Scalar:
        parts = []
        for side in (node.this, node.expression):
            one = self.scalar(side)
            parts.append(self.make.cast(one, pl.String()))
        return self.make.function("concat_str", parts)

    def _case(self, node: Any) -> Scalar:
        cases = []
        for case in node.args["ifs"]:
            if node.this is None:
                holds = self.condition(case.this, "WHEN")
            else:
                left, right = self._alike([node.this, case.this], case)
                holds = self.make.operator(left, "==", right)
            cases.append((holds, self.scalar(case.args["true"])))
        default = node.args.get("default")
        return self._chosen(node, cases, None if default is None else self.scalar(default))

    def _if(self, node: Any) -> Scalar:
        other = node.args.get("false")
        cases = [(self.condition(node.this, "IF"), self.scalar(node.args["true"]))]
        return self._chosen(node, cases, None if other is None else self.scalar(other))

    def _chosen(self, node: Any, cases: list[tuple[Scalar, Scalar]], otherwise: Scalar | None) -> Scalar:
        values = [value for _, value in cases] + ([] if otherwise is None else [otherwise])
        kinds = {"whole" if one.kind == "number" else one.kind for one in values} - {"null"}
        if len(kinds) > 1:
            types = " and ".join(dict.fromkeys(a_type(one.type) for one in values if one.kind != "null"))
            raise error_at(node, f"the values of a CASE must be of one type, got {types}; write CAST")
        values = self._one_type(values, node)
        cases = [(holds, value) for (holds, _), value in zip(cases, values)]
        return self.make.when(cases, None if otherwise is None else values[-1])

    def _cast(self, node: Any) -> Scalar:
        one, to = self.scalar(node.this), column_type(node.to)
        if one.kind == "text" and isinstance(to, pl.Datetime | pl.Date):
            if isinstance(one.literal, str) and (time := constant_time(one.literal)) is not None:
                return self.make.cast(self.make.literal(time), to)
            return self.make.cast(timestamp_of_text(self.make, one), to)
        if one.kind == "text" and (to == pl.Boolean() or to.is_numeric() or to == pl.Time()):
            one = self.make.call(one, "str.strip_chars", " ")
        if isinstance(to, pl.Decimal):
            return decimals.cast(self.make, one, to)
        if one.kind == "text" and to == pl.Boolean():
            lower = self.make.call(one, "str.to_lowercase")
            true, false = (self.make.call(lower, "is_in", list(words)) for words in (_TRUE, _FALSE))
            return self.make.when([(true, self.make.literal(True)), (false, self.make.literal(False))], None)
        if {one.kind} & {"whole", "number"} and isinstance(to, pl.Datetime):
            raise error_at(
                node, "a number doesn't say its unit; write FROM_UNIXTIME(ms), of milliseconds since 1970"
            )
        if one.kind == "time" and to.is_numeric():
            raise error_at(node, "a TIMESTAMP as a number: write UNIX_TIMESTAMP(ts), in milliseconds")
        if isinstance(to, pl.Time) and one.kind == "text":
            return self._clock(one, node)
        if isinstance(to, pl.Time) and one.kind not in ("clock", "null") and one.type != TIME:
            raise error_at(node, f"only a TIMESTAMP or a text can be cast to TIME, got {a_type(one.type)}")
        if one.kind in ("list", "struct") and to != one.type:
            raise error_at(node, f"{a_type(one.type)} can't be cast to {sql_type(to)}")
        cast = self.make.cast(one, to)
        # 0.5 combined with a DECIMAL is exact, and CAST(0.5 AS DOUBLE) is a DOUBLE.
        return replace(cast, literal=None, digits="") if to.is_float() else cast

    def _extract(self, node: Any) -> Scalar:
        part = node.name.upper()
        if part not in PARTS:
            instead = {"EPOCH": "; write UNIX_TIMESTAMP(time) / 1000", "DOW": "; write DAYOFWEEK(time)"}
            more = instead.get(part, "")
            raise error_at(node, f"EXTRACT takes one of {', '.join(PARTS)}, got {part}{more}")
        return self.call(node, part, [node.expression])

    def _trim(self, node: Any) -> Scalar:
        which = (node.args.get("position") or "BOTH").upper()
        name = {"BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}[which]
        return self.call(node, name, [one for one in (node.this, node.expression) if one is not None])

    def _substring(self, node: Any) -> Scalar:
        given = [node.this, node.args.get("start"), node.args.get("length")]
        return self.call(node, "SUBSTRING", [one for one in given if one is not None])

    def _position(self, node: Any) -> Scalar:
        return self.call(node, "INSTR", [node.this, node.args["substr"]])

    def _element(self, node: Any) -> Scalar:
        """An array's element, counted from 1; a field of a struct by its name in quotes."""
        one, (index,) = self.scalar(node.this), node.expressions
        at = self.scalar(index)
        if one.kind == "struct" and isinstance(at.literal, str):
            return struct_field(self.make, one, at.literal, index)
        if map_value(one.type) is not None and at.kind in ("text", "null"):
            return map_element(self.make, one, at)
        if one.kind != "list":
            raise error_at(node.this, f"[…] takes an element of an ARRAY, got {a_type(one.type)}")
        if at.kind != "whole":
            raise error_at(index, f"the number of an element must be a whole number, got {a_type(at.type)}")
        if at.literal is not None:
            if at.literal < 1:
                raise error_at(index, f"arrays count from 1: the number must be ≥ 1, got {at.literal}")
            return _as_element(self.make.call(one, "list.get", at.literal - 1, null_on_oob=True), one)
        below = self.make.operator(at, "-", self.make.literal(1))
        some = self.make.when([(self.make.operator(at, ">=", self.make.literal(1)), below)], None)
        return _as_element(self.make.call(one, "list.get", some, null_on_oob=True), one)

    def _field(self, node: Any) -> Scalar:
        """``struct->field`` and ``struct.field``."""
        one, name = self.scalar(node.this), node.expression
        if map_value(one.type) is not None:
            return map_element(self.make, one, self.make.literal(name.name))
        return struct_field(self.make, one, name.name, node)

    def _array(self, node: Any) -> Scalar:
        if not node.expressions:
            raise error_at(node, "ARRAY[] must have an element")
        return self._listed(self._alike(node.expressions, node))

    def _listed(self, items: list[Scalar]) -> Scalar:
        """A list of values of one type."""
        if all(one.kind == "whole" for one in items):
            # Polars fails on lists of constants whose width isn't determined.
            items = [self.make.cast(one, pl.Int64()) for one in items]
        if any(one.kind == "list" for one in items):
            # Polars concatenates the elements of lists, unless each list is wrapped.
            named = [self.make.function("struct", [self.make.call(one, "alias", "x")]) for one in items]
            whole = self.make.function("concat_list", named)
            inner = pl.element().struct.field("x")
            text = f"{whole.text}.list.eval(pl.element().struct.field('x'))"
            made = self.make.made(whole.expr.list.eval(inner), text)
            return replace(made, type=pl.List(of_alike(items[0], items).type))
        return self.make.function("concat_list", items)

    def _present(self, node: Any) -> Scalar:
        if self._now is None:
            raise error_at(
                node,
                "the current time would stay fixed at the query's start; compare times of the rows, such as "
                "ROWTIME, or query a stored table",
            )
        if node.expressions if isinstance(node, exp.Anonymous) else node.args.get("this"):
            raise error_at(node, "the present time has no precision: write NOW()")
        return self.make.literal(self._now)

    def _unit(self, node: Any) -> Any:
        """A unit of time, which may be a bare word, as a string."""
        if not isinstance(node, exp.Column) or node.table:
            return node
        text = exp.Literal.string(node.name)
        text.meta.update(node.this.meta)
        return text

    def _zoned(self, node: Any) -> Scalar:
        """time AT TIME ZONE 'zone': the local time there, since all times are in UTC."""
        one = self.scalar(node.this)
        if one.kind != "time":
            raise error_at(node.this, f"AT TIME ZONE takes a TIMESTAMP, got {a_type(one.type)}")
        if one.literal is not None:
            raise error_at(
                node,
                "AT TIME ZONE of a constant: write it with its offset, TIMESTAMP '2026-06-01 12:00:00+03:00'",
            )
        return in_zone(self.make, one, self.scalar(node.args["zone"]))

    def _matched(self, node: Any) -> Scalar:
        """text RLIKE pattern."""
        return self.call(node, "REGEXP_LIKE", [node.this, node.expression])

    def _structure(self, node: Any) -> Scalar:
        """STRUCT(name := value, …)."""
        fields: dict[str, Scalar] = {}
        for one in node.expressions:
            if not isinstance(one, exp.PropertyEQ | exp.Kwarg | exp.Alias):
                raise error_at(one, "STRUCT names its fields: STRUCT(name := value)")
            if isinstance(one.this, exp.Literal) and not isinstance(one, exp.Alias):
                raise error_at(one, "a field of a STRUCT is named without quotes: STRUCT(name := value)")
            name = one.alias if isinstance(one, exp.Alias) else one.this.name
            if name in fields:
                raise error_at(one, f"two fields of a STRUCT are called {name}")
            fields[name] = self.scalar(one.this if isinstance(one, exp.Alias) else one.expression)
        if not fields:
            raise error_at(node, "STRUCT must have a field: STRUCT(name := value)")
        named = [self.make.call(one, "alias", name) for name, one in fields.items()]
        made = self.make.function("struct", named)
        return replace(made, type=pl.Struct({name: one.type for name, one in fields.items()}))

    def _map(self, node: Any) -> Scalar:
        """MAP('key' := value, …); of two values for one key the last one counts, as in ksqlDB."""
        members: dict[str, Any] = {}
        for one in node.expressions:
            if not isinstance(one, exp.PropertyEQ | exp.Kwarg):
                raise error_at(one, "MAP names its keys: MAP('key' := value)")
            members[self._key(one.this)] = one.expression
        return self._entries(node, members)

    def _key(self, node: Any) -> str:
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise error_at(node, "the key of a MAP must be a constant text, in single quotes")
        return str(node.this)

    def _entries(self, node: Any, members: dict[str, Any]) -> Scalar:
        if not members:
            raise error_at(node, "MAP must have a key: MAP('key' := value)")
        values = self._alike(list(members.values()), node)
        if all(one.kind == "whole" for one in values):
            values = [self.make.cast(one, pl.Int64()) for one in values]
        entries = []
        for key, value in zip(members, values):
            named = [
                self.make.call(self.make.literal(key), "alias", "key"),
                self.make.call(value, "alias", "value"),
            ]
            entries.append(self.make.function("struct", named))
        made = self.make.function("concat_list", entries)
        return replace(made, type=Map(of_alike(values[0], values).type))

    def _function(self, node: Any) -> Scalar:
        if node.name.upper() == "STRUCT":
            return self._structure(node)
        if node.name.upper() == "MAP":
            return self._map(node)
        return self.call(node, node.name.upper(), node.expressions)

    def call(self, node: Any, name: str, given: list[Any]) -> Scalar:
        """Apply a function of `scalar_functions` to arguments."""
        if name in ("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"):
            return self._present(node)
        function = FUNCTIONS.get(name)
        if function is None:
            raise error_at(node, unknown_function(name, [*FUNCTIONS, *function_names()]))
        fewest, most = function.arguments
        if not fewest <= len(given) <= most:
            raise error_at(node, f"{name} takes {counted_arguments(fewest, most)}, got {len(given)}")
        given = [self._unit(one) if at == 0 and function.unit else one for at, one in enumerate(given)]
        arguments = [self.scalar(one) for one in given]
        for at, (one, kinds) in enumerate(zip(arguments, function.kinds_of(len(arguments)))):
            if one.kind not in (*kinds, "null"):
                wanted = " or ".join(
                    _KIND_NAMES[kind] for kind in kinds if kind != "whole" or "number" not in kinds
                )
                raise error_at(given[at], f"{name} takes {wanted} here, got {a_type(one.type)}")
            if one.kind == "null" and len(kinds) <= 2 and kinds[0] in _OF_NULL:
                # Polars refuses many functions of an untyped NULL, but only once rows arrive.
                arguments[at] = self.make.cast(one, _OF_NULL[kinds[0]])
        made = function.make(self.make, *arguments)
        if name in ARRAY_FUNCTIONS:
            # The elements are unchanged, and may be MAPs.
            lists = [pl.List(one.type.inner) for one in arguments if isinstance(one.type, pl.List)]
            made = replace(made, type=next((kind for kind in lists if kind == made.type), made.type))
        return made


def _as_element(one: Scalar, of: Scalar) -> Scalar:
    """An element with the element type of the list, which may be a MAP."""
    inner: Any = of.type.inner if isinstance(of.type, pl.List) else one.type
    return replace(one, type=inner)


def struct_field(make: Scalars, one: Scalar, name: str, node: Any) -> Scalar:
    """A field of a struct. Raises `SqlError` at a node if the value has no such field."""
    if not isinstance(one.type, pl.Struct):
        raise error_at(
            node,
            f"-> takes a field of a STRUCT, got {a_type(one.type)}; of a text with JSON write "
            "EXTRACTJSONFIELD(text, '$.field')",
        )
    names = [field.name for field in one.type.fields]
    fit = [known for known in names if known == name] or [
        known for known in names if known.lower() == name.lower()
    ]
    if len(fit) != 1:
        raise error_at(node, f"no field is called {name}; {nearest(name, names)}")
    kinds: dict[str, Any] = {field.name: field.dtype for field in one.type.fields}
    return replace(make.call(one, "struct.field", fit[0]), type=kinds[fit[0]])


def constant_time(text: str) -> datetime | None:
    """The time in UTC in a text, with an offset or without; None if it isn't a time.

    >>> constant_time("2026-01-01 02:00:00+02:00"), constant_time("noon")
    (datetime.datetime(2026, 1, 1, 0, 0), None)
    """
    try:
        # With a space before the offset, as other systems write it.
        time = datetime.fromisoformat(re.sub(r" (?=[+-]\d\d(:?\d\d)?$)", "", text))
    except ValueError:
        return None
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def refused(node: Any) -> Any:
    """The error for a node that no expression may have, with what to write."""
    for types, message in _REFUSED.items():
        if isinstance(node, types):
            return error_at(node, message)
    return error_at(node, f"{in_words(node)} is not supported here")


_REFUSED: dict[Any, str] = {
    exp.Window: "OVER looks at other rows: aggregate by a window instead, WINDOW TUMBLING (SIZE …)",
    (
        exp.Subquery,
        exp.Select,
        exp.Exists,
    ): "a query within a query: CREATE STREAM … AS SELECT first, and read that",
    exp.Table: "FROM takes a name without brackets",
    exp.Star: "* is for SELECT * and COUNT(*)",
    exp.Distinct: "DISTINCT: write APPROX_COUNT_DISTINCT(column)",
    exp.Interval: "an INTERVAL must be added to a TIMESTAMP, or subtracted from one",
    exp.Filter: "FILTER (WHERE …) follows an aggregate",
    exp.Lambda: "functions of functions: write the stream in Python",
    (
        exp.GroupingSets,
        exp.Cube,
        exp.Rollup,
    ): "GROUPING SETS, CUBE and ROLLUP: name the columns; coarser answers come from merging",
    exp.CurrentDate: "CURRENT_DATE: compare times of the rows, such as ROWTIME",
    exp.JSONExtractScalar: "->> takes a field of JSON: write EXTRACTJSONFIELD(text, '$.field')",
    (
        exp.IgnoreNulls,
        exp.RespectNulls,
    ): "IGNORE NULLS and RESPECT NULLS: aggregates leave NULL out; leave it out",
    exp.WithinGroup: "WITHIN GROUP: write PERCENTILE_APPROX(column, 0.5)",
    exp.IntDiv: "DIV: write a / b, which is a whole number if both are",
    exp.SimilarTo: "SIMILAR TO: write REGEXP_LIKE(text, pattern)",
    exp.Any: "ANY: write ARRAY_CONTAINS(array, value), or IN (…)",
    exp.Tuple: "a row of several values: compare them one by one, a = 1 AND b = 2",
    (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor): "&, | and ^ of bits: write / and % of powers of 2",
    exp.Collate: "COLLATE: texts are compared by their bytes; write LOWER(text) or UPPER(text)",
}


def interval_us(node: Any) -> int:
    """The microseconds of an INTERVAL."""
    unit = node.args.get("unit")
    parts = str(node.this.name if node.this is not None else "").split()
    if unit is not None:
        parts = [*parts[:1], unit.name]
    name = parts[1].upper() if len(parts) == 2 else ""
    name = name if name in UNITS else name.removesuffix("S")
    if len(parts) != 2 or not parts[0].isdigit() or name not in UNITS:
        raise error_at(node, "an INTERVAL must be written as INTERVAL '10' MINUTE")
    return int(parts[0]) * UNITS[name]


def interval_offset(node: Any) -> str:
    """An INTERVAL in Polars' notation; months and years have their calendar lengths."""
    unit = node.args.get("unit")
    parts = str(node.this.name if node.this is not None else "").split()
    parts = [*parts[:1], unit.name] if unit is not None else parts
    name = parts[1].upper().removesuffix("S") if len(parts) == 2 else ""
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}.get(name)
    if months is not None and parts[0].isdigit():
        return f"{int(parts[0]) * months}mo"
    return f"{interval_us(node)}us"


def like_expression(pattern: str, escape: str | None = None) -> str:
    """The regular expression for a LIKE pattern. Raises `ValueError` if `escape` escapes another character.

    >>> like_expression("a%_."), like_expression("5!%%", "!")
    ('a.*.\\\\.', '5%.*')
    """
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign == escape:
            literal = next(signs, "")
            if literal not in ("%", "_", escape):
                raise ValueError(
                    f"{escape} in a pattern must be followed by %, _ or {escape}, got {pattern!r}"
                )
            parts.append(re.escape(literal))
        else:
            parts.append({"%": ".*", "_": "."}.get(sign, re.escape(sign)))
    return "".join(parts)


_KIND_NAMES = {
    "whole": "a whole number",
    "number": "a number",
    "text": "a VARCHAR",
    "boolean": "a condition",
    "time": "a TIMESTAMP",
    "clock": "a TIME",
    "list": "an ARRAY",
    "struct": "a STRUCT",
    "bytes": "BYTES",
}
_OF_NULL: dict[str, pl.DataType] = {
    "whole": pl.Int64(),
    "number": pl.Float64(),
    "text": pl.String(),
    "boolean": pl.Boolean(),
    "time": TIME,
}
"""The type that a bare NULL gets if a function accepts this kind."""

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
"""Texts that stand for a BOOLEAN, as in Flink, Spark and Postgres."""

_SIGNS: dict[Any, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

_METHODS: dict[Any, Callable[[Expressions, Any], Scalar]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), Expressions._arithmetic),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), Expressions._compared),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), Expressions._distinct_from),
    **dict.fromkeys((exp.And, exp.Or), Expressions._logic),
    **dict.fromkeys((exp.Like, exp.ILike), Expressions._like),
    **dict.fromkeys((exp.Cast, exp.TryCast), Expressions._cast),
    **dict.fromkeys((exp.Dot, exp.JSONExtract), Expressions._field),
    **dict.fromkeys((exp.CurrentTimestamp,), Expressions._present),
    exp.Column: Expressions._name,
    exp.Literal: Expressions._constant,
    exp.Boolean: Expressions._boolean,
    exp.Null: Expressions._null,
    exp.Paren: Expressions._paren,
    exp.Neg: Expressions._negative,
    exp.Not: Expressions._not,
    exp.Is: Expressions._is,
    exp.In: Expressions._in,
    exp.Between: Expressions._between,
    exp.Escape: Expressions._escaped,
    exp.DPipe: Expressions._concatenated,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Extract: Expressions._extract,
    exp.Trim: Expressions._trim,
    exp.Substring: Expressions._substring,
    exp.StrPosition: Expressions._position,
    exp.Bracket: Expressions._element,
    exp.Array: Expressions._array,
    exp.AtTimeZone: Expressions._zoned,
    exp.RegexpLike: Expressions._matched,
    exp.Anonymous: Expressions._function,
}

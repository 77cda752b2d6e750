"""Random queries over random rows give the rows that DuckDB gives, over the engine without a broker.

Streams are tables there, a window is the quotient of the time, and a join of two streams has the distance of
their times in its condition. Columns of different streams have the same names, and aliases are drawn from the
names of columns, so that one name often means several values. A query that differs is made smaller until
nothing can be left out of it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import polars as pl
import pytest

from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.session import SqlSession

from ...cases import seeds

START = 1_767_225_600_000
SIZE = 5
"""Of a window, and of the reach of a join, in seconds."""
COLUMNS = {
    "s": {
        "ts": "BIGINT",
        "k": "VARCHAR",
        "n": "BIGINT",
        "m": "BIGINT",
        "x": "DOUBLE",
        "w": "VARCHAR",
        "b": "BOOLEAN",
        "tags": "VARCHAR[]",
        "nums": "BIGINT[]",
        "meta": "STRUCT(a BIGINT, w VARCHAR)",
    },
    "t": {"ts": "BIGINT", "k": "VARCHAR", "n": "BIGINT", "x": "DOUBLE", "w": "VARCHAR"},
    "u": {"k": "VARCHAR", "n": "BIGINT", "w": "VARCHAR", "town": "VARCHAR"},
}
DECLARED = """
CREATE STREAM s (ts BIGINT, k VARCHAR, n BIGINT, m BIGINT, x DOUBLE, w VARCHAR, b BOOLEAN,
  tags ARRAY<VARCHAR>, nums ARRAY<BIGINT>, meta STRUCT<a BIGINT, w VARCHAR>)
  WITH (KAFKA_TOPIC='s', TIMESTAMP='ts');
CREATE STREAM t (ts BIGINT, k VARCHAR, n BIGINT, x DOUBLE, w VARCHAR) WITH (KAFKA_TOPIC='t', TIMESTAMP='ts');
CREATE TABLE u (k VARCHAR PRIMARY KEY, n BIGINT, w VARCHAR, town VARCHAR) WITH (KAFKA_TOPIC='u');
"""
KINDS = {"BIGINT": "whole", "DOUBLE": "number", "VARCHAR": "text", "BOOLEAN": "truth"}
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Both:
    """A part of a query in our SQL and in DuckDB's."""

    ours: str
    theirs: str

    @classmethod
    def of(cls, form: str | tuple[str, str], **parts: Both) -> Both:
        """Forms, the same or one for each, with parts between their braces."""
        ours, theirs = (form, form) if isinstance(form, str) else form
        return cls(
            ours.format(**{name: one.ours for name, one in parts.items()}),
            theirs.format(**{name: one.theirs for name, one in parts.items()}),
        )


@dataclass(frozen=True)
class Query:
    """A query in parts that can be left out one by one."""

    source: Both
    items: tuple[tuple[Both, str], ...]
    time: str = ""
    where: tuple[Both, ...] = ()
    groups: tuple[Both, ...] = ()
    having: tuple[Both, ...] = ()

    def text(self, side: Callable[[Both], str], ours: bool) -> str:
        """The statement of one side."""
        items = ", ".join(f"{side(one)} AS {alias}" for one, alias in self.items)
        text = f"SELECT {items} FROM {side(self.source)}"
        if self.time and ours:
            text += f" WINDOW TUMBLING (SIZE {SIZE} SECONDS)"
        if self.where:
            text += " WHERE " + " AND ".join(f"({side(one)})" for one in self.where)
        groups = [side(one) for one in self.groups] + ([f"{self.time} // {SIZE * 1000}"] if self.time else [])
        if ours and self.time:
            groups = groups[:-1]
        if groups:
            text += " GROUP BY " + ", ".join(groups)
        if self.having:
            text += " HAVING " + " AND ".join(f"({side(one)})" for one in self.having)
        return text

    @property
    def ours(self) -> str:
        """In our SQL."""
        return self.text(lambda one: one.ours, True)

    @property
    def theirs(self) -> str:
        """In DuckDB's."""
        return self.text(lambda one: one.theirs, False)

    def shorter(self) -> Iterator[Query]:
        """With one part left out."""
        for name in ("where", "having", "items", "groups"):
            parts = getattr(self, name)
            for at in range(len(parts)):
                rest = (*parts[:at], *parts[at + 1 :])
                if rest or name != "items":
                    yield replace(self, **{name: rest})


class Generator:
    """Rows and queries, all from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names: dict[str, list[Both]] = {}

    def rows(self) -> Rows:
        """A dozen rows of each stream, and a table; a quarter of their values are null."""
        chosen = self._random
        values: dict[str, Callable[[], Any]] = {
            "BIGINT": lambda: chosen.randint(-4, 9),
            "DOUBLE": lambda: chosen.choice([-1.5, 0.0, 0.25, 2.5, 7.0, 1e6]),
            "VARCHAR": lambda: chosen.choice(["a", "b", "B", "", "aé", "a%", "12"]),
            "BOOLEAN": lambda: chosen.random() < 0.5,
            "VARCHAR[]": lambda: [self._value("VARCHAR", values) for _ in range(chosen.randint(0, 3))],
            "BIGINT[]": lambda: [self._value("BIGINT", values) for _ in range(chosen.randint(0, 3))],
        }
        values["STRUCT(a BIGINT, w VARCHAR)"] = lambda: {
            "a": self._value("BIGINT", values),
            "w": self._value("VARCHAR", values),
        }
        rows: Rows = {}
        for stream in ("s", "t"):
            times = sorted(START + chosen.randint(0, 30) * 500 for _ in range(chosen.randint(1, 14)))
            rows[stream] = [
                {
                    name: time if name == "ts" else self._value(kind, values)
                    for name, kind in COLUMNS[stream].items()
                }
                for time in times
            ]
        rows["u"] = [
            {name: key if name == "k" else self._value(kind, values) for name, kind in COLUMNS["u"].items()}
            for key in ("a", "B", "")
        ]
        return rows

    def _value(self, kind: str, values: dict[str, Callable[[], Any]]) -> Any:
        return None if self._random.random() < 0.25 else values[kind]()

    def query(self) -> Query:
        """A query of rows or of windows, over one stream or a join."""
        source, time = self._source()
        pick = self._random
        where = tuple(self._expression("truth", 2) for _ in range(pick.choice([0, 0, 1, 2])))
        if pick.random() < 0.5:
            names = pick.sample(["k", "n", "w", "x", "one", "two", "ts"], pick.randint(1, 4))
            items = [(self._expression(self._kind(), 2), name) for name in names]
            for at in range(pick.choice([0, 0, 0, 1, 2])):
                array = pick.choice(["s.tags", "s.nums"])
                items.append((Both(f"EXPLODE({array})", f"UNNEST({array})"), f"element_{at}"))
            return Query(source, tuple(items), where=where)
        names = pick.sample(["k", "n", "w", "x", "m", "one", "two"], pick.randint(2, 5))
        keys = tuple(
            self._expression(pick.choice(["whole", "text", "truth"]), 2)
            for _ in range(pick.choice([0, 1, 1, 2]))
        )
        keys = tuple({one.ours: one for one in keys if self._reads(one)}.values())
        items = [(key, names.pop()) for key in keys if len(names) > 1]
        items += [(self._aggregate(), name) for name in names]
        having = tuple(
            Both.of(pick.choice(["{a} > 1", "{a} IS NOT NULL", "{a} <= 3"]), a=self._aggregate(of="whole"))
            for _ in range(pick.choice([0, 0, 1]))
        )
        aliases = {one.ours: Both(name, name) for one, name in items if name in ("one", "two")}
        groups = tuple(aliases.get(key.ours, key) if pick.random() < 0.5 else key for key in keys)
        for _, alias in items[len(groups) :]:
            if alias in ("one", "two") and pick.random() < 0.3:
                having = (*having, Both(f"{alias} IS NOT NULL", f"{alias} IS NOT NULL"))
        return Query(source, tuple(items), time, where, groups, having)

    def _reads(self, one: Both) -> bool:
        """Whether it reads a column: a constant in GROUP BY is a column's number."""
        return any(name.ours in one.ours for names in self._names.values() for name in names)

    def _source(self) -> tuple[Both, str]:
        """FROM, and the event time of its rows there; sets the names that there are."""
        pick = self._random
        kind = pick.choice(["s", "s", "table", "table", "stream", "stream", "unnest"])
        self._names = {}
        if kind == "stream":
            how = pick.choice(["JOIN", "LEFT JOIN", "FULL OUTER JOIN"])
            on = pick.choice([("k", "k"), ("k", "k"), ("k", "w"), ("n", "n")])
            self._add("s")
            self._add("t")
            near = f"s.{on[0]} = t.{on[1]} AND abs(s.ts - t.ts) <= {SIZE * 1000}"
            ours = f"s {how} t WITHIN {SIZE} SECONDS ON s.{on[0]} = t.{on[1]}"
            beside = ""
            if pick.random() < 0.4:
                self._add("u")
                beside = (
                    f" {pick.choice(['JOIN', 'LEFT JOIN'])} u ON {pick.choice(['s.k', 't.k', 't.w'])} = u.k"
                )
            return Both(ours + beside, f"s {how} t ON {near}{beside}"), "GREATEST(s.ts, t.ts)"
        self._add("s", kind == "s")
        if kind == "table":
            how, key = pick.choice(["JOIN", "LEFT JOIN"]), pick.choice(["k", "w"])
            self._add("u")
            text = f"s {how} u ON s.{key} = u.k"
            return Both(text, text), "s.ts"
        if kind == "unnest":
            array, alias = pick.choice([("tags", "text"), ("nums", "whole")]), pick.choice(["e", "tag"])
            left = pick.random() < 0.5
            self._names.setdefault(array[1], []).append(Both(f"a.{alias}", f"a.{alias}"))
            if left:
                return (
                    Both(
                        f"s LEFT JOIN UNNEST({array[0]}) AS a({alias}) ON TRUE",
                        f"s LEFT JOIN LATERAL (SELECT UNNEST(s.{array[0]})) AS a({alias}) ON TRUE",
                    ),
                    "s.ts",
                )
            text = f"s CROSS JOIN UNNEST({array[0]}) AS a({alias})"
            return Both(text, f"s CROSS JOIN UNNEST(s.{array[0]}) AS a({alias})"), "s.ts"
        return Both("s", "s"), "s.ts"

    def _add(self, stream: str, bare: bool = False) -> None:
        prefix = "" if bare and self._random.random() < 0.5 else f"{stream}."
        for name, kind in COLUMNS[stream].items():
            if kind in KINDS:
                self._names.setdefault(KINDS[kind], []).append(Both(prefix + name, prefix + name))
        if stream == "s":
            parts = {"text": ("tags[1]", "tags[2]", "meta.w"), "whole": ("nums[1]", "meta->a")}
            for kind, names in parts.items():
                self._names[kind] += [Both(prefix + one, prefix + one.replace("->", ".")) for one in names]
            self._names.setdefault("time", []).append(
                Both(f"{'' if bare else 's.'}ROWTIME", "make_timestamp(s.ts * 1000)")
            )

    def _kind(self) -> str:
        return self._random.choice(["whole", "number", "text", "truth"])

    def _aggregate(self, of: str = "") -> Both:
        pick = self._random
        kind = of or self._kind()
        # An empty text is no value to a sketch.
        some = "NULLIF({a}, '')" if kind == "text" else "{a}"
        forms: list[str | tuple[str, str]] = ["COUNT(*)", "COUNT({a})"]
        forms.append(("APPROX_COUNT_DISTINCT({a})", f"COUNT(DISTINCT {some})"))
        if kind in ("whole", "number"):
            forms += ["SUM({a})", "MIN({a})", "MAX({a})", "SUM({a}) FILTER (WHERE {c})"]
            forms += [] if of else ["AVG({a})", "SUM(CASE WHEN {c} THEN {a} ELSE 0 END)"]
        if kind == "text":
            forms += ["MIN({a})", "MAX({a})"]
        forms += ["COUNT(*) FILTER (WHERE {c})"]
        return Both.of(pick.choice(forms), a=self._expression(kind, 1), c=self._expression("truth", 1))

    def _expression(self, kind: str, depth: int) -> Both:
        pick = self._random
        if depth == 0 or pick.random() < 0.3:
            constants = {
                "whole": ["0", "3", "-2"],
                "number": ["0.5", "-2.0"],
                "text": ["'a'", "''", "'B'"],
                "truth": ["TRUE", "FALSE"],
            }
            if self._names.get(kind) and (depth > 0 or pick.random() < 0.85):
                return pick.choice(self._names[kind])
            constant = pick.choice(constants[kind])
            cast = {"whole": "BIGINT", "number": "DOUBLE"}.get(kind)
            return Both(constant, f"CAST({constant} AS {cast})" if cast else constant)
        form = pick.choice(FORMS[kind] + FORMS["any"])
        parts = {
            name: self._expression(kind if of == "same" else of, depth - 1) for name, of in PARTS.items()
        }
        if self._names.get("time"):
            parts["r"] = pick.choice(self._names["time"])
        elif "{r}" in str(form):
            return self._expression(kind, depth - 1)
        return Both.of(form, **{name: Both(f"({p.ours})", f"({p.theirs})") for name, p in parts.items()})


PARTS = {
    "a": "whole",
    "b": "whole",
    "x": "number",
    "y": "number",
    "s": "text",
    "t": "text",
    "c": "truth",
    "d": "truth",
    "k": "same",
    "l": "same",
}
FORMS: dict[str, list[str | tuple[str, str]]] = {
    "any": [
        "CASE WHEN {c} THEN {k} ELSE {l} END",
        "CASE WHEN {c} THEN {k} END",
        "COALESCE({k}, {l})",
        "NULLIF({k}, {l})",
    ],
    "whole": [
        *("{a} + {b}", "{a} - {b}", "{a} * 2", "-{a}", "ABS({a})", "LENGTH({s})", "GREATEST({a}, {b})"),
        ("{a} / {b}", "{a} // NULLIF({b}, 0)"),
        ("{a} % {b}", "{a} % NULLIF({b}, 0)"),
        ("ROUND({a} * 7, -1)", "CAST(ROUND({a} * 7, -1) AS BIGINT)"),
        "CAST({c} AS BIGINT)",
        "EXTRACT(SECOND FROM {r})",
    ],
    "number": ["{x} + {y}", "{x} - {a}", "{x} * {y}", "ABS({x})", "CAST({a} AS DOUBLE)", "FLOOR({x} / 10.0)"],
    "text": ["UPPER({s})", "{s} || {t}", "SUBSTRING({s}, 1, 1)", "CAST({a} AS VARCHAR)", "TRIM({s})"],
    "truth": [
        *("{a} < {b}", "{a} = {b}", "{x} > {y}", "{s} = {t}", "{s} <> {t}", "{a} <= {x}", "NOT {c}"),
        *("{c} AND {d}", "{c} OR {d}", "{a} IS NULL", "{s} IS NOT NULL", "{c} IS TRUE", "{a} IN (1, {b}, 3)"),
        *("{a} BETWEEN 0 AND {b}", "{s} LIKE 'a%'", "{s} LIKE '%!%' ESCAPE '!'", "{a} NOT IN (1, NULL)"),
        *("{s} IS DISTINCT FROM {t}", "{x} NOT BETWEEN {y} AND 3"),
        ("{a} BETWEEN SYMMETRIC {b} AND 2", "({a} BETWEEN {b} AND 2 OR {a} BETWEEN 2 AND {b})"),
        ("{r} >= TIMESTAMP '2026-01-01 02:00:04+02:00'", "{r} >= TIMESTAMP '2026-01-01 00:00:04'"),
        ("{r} < TIMESTAMP '2025-12-31 22:30:08.5-01:30'", "{r} < TIMESTAMP '2026-01-01 00:00:08.5'"),
    ],
}


class Engines:
    """The same rows in both."""

    def __init__(self, rows: Rows) -> None:
        engine = Memory()
        self._session = SqlSession(engine)
        assert all(one.error is None for one in self._session.run(DECLARED))
        self._duckdb = duckdb.connect()
        for name, own in rows.items():
            engine.insert(self._session.catalog.relations[name], own)
            columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[name].items())
            self._duckdb.execute(f"CREATE TABLE {name} ({columns})")
            if own:
                frame = pl.DataFrame(own, infer_schema_length=None).to_arrow()
                self._duckdb.register("given", frame)
                self._duckdb.execute(f"INSERT INTO {name} SELECT * FROM given")

    def difference(self, query: Query) -> str:
        """In what the rows differ; empty if they don't."""
        outcome = list(self._session.run(query.ours))[-1]
        if outcome.error is not None:
            return f"refused: {outcome.error}"
        ours = Counter(tuple(map(shown, row)) for row in outcome.rows)
        theirs = Counter(tuple(map(shown, row)) for row in self._duckdb.execute(query.theirs).fetchall())
        return "" if ours == theirs else f"ours besides {ours - theirs}, DuckDB's besides {theirs - ours}"


def shown(value: Any) -> str:
    """A value as it is compared: numbers to nine digits."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return f"{value + 0.0:.9g}"
    return repr(value)


def shrunk(rows: Rows, query: Query) -> tuple[Rows, Query, str]:
    """The least that still differs, as far as leaving out one part or row at a time goes."""
    wrong, smaller = Engines(rows).difference(query), True
    while smaller:
        smaller = False
        fewer = [(rows, one) for one in query.shorter()]
        for name, own in rows.items():
            fewer += [({**rows, name: [*own[:at], *own[at + 1 :]]}, query) for at in range(len(own))]
        for some, one in fewer:
            try:
                why = Engines(some).difference(one)
            except duckdb.Error:
                continue
            if why and why.startswith("refused") == wrong.startswith("refused"):
                rows, query, wrong, smaller = some, one, why, True
                break
    return rows, query, wrong


def check(seed: int, queries: int) -> None:
    generator = Generator(seed)
    rows = generator.rows()
    engines = Engines(rows)
    for _ in range(queries):
        query = generator.query()
        if engines.difference(query):
            few, least, why = shrunk(rows, query)
            pytest.fail(f"seed {seed}: {least.ours}\n{least.theirs}\n{few}\n{why}")


@pytest.mark.parametrize("part", seeds(1, 3))
def test_queries_give_the_rows_that_duckdb_gives(part: int) -> None:
    for seed in range(part * 10, part * 10 + 10):
        check(seed, 10)


@pytest.mark.soak
def test_thousands_of_queries_give_the_rows_that_duckdb_gives() -> None:
    for seed in range(1_000, 1_250):
        check(seed, 20)

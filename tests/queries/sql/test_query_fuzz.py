"""Random queries over random rows give the rows that DuckDB gives, over the engine without a broker.

Streams are tables there, a join of two streams has the distance of their times in its condition. A tumbling
window is the quotient of the time, a hopping one that of a row for each window over it, and a session the
number of pauses before it. The same queries give the same rows where a topic's rows lie in several partitions
and come by and by, and as consumers of a broker and on Spark. Columns of different streams have the same
names, and aliases are drawn from the names of columns, so that one name often means several values. A query
that differs is made smaller until nothing can be left out of it.
"""

from __future__ import annotations

import random
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl
import pytest
from confluent_kafka import Producer

from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import RowReader, topics_of
from streamgauge.queries.sql.run.session import SqlSession

from ...apps.cli.test_sql import ran
from ...cases import seeds

START = 1_767_225_600_000
SIZE = 5
"""Of a window, and of the reach of a join, in seconds."""
HOPS = 2
"""Of windows that hold a row, those that hop."""
GAP = 1
"""Of a session, in seconds: half of all pauses are as long."""
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
    window: str = "TUMBLING (SIZE 5 SECONDS)"

    def text(self, side: Callable[[Both], str], ours: bool) -> str:
        """The statement of one side."""
        items = ", ".join(f"{side(one)} AS {alias}" for one, alias in self.items)
        text = f"SELECT {items} FROM {side(self.source)}"
        where = " WHERE " + " AND ".join(f"({side(one)})" for one in self.where) if self.where else ""
        groups = [side(one) for one in self.groups]
        if ours:
            text += (f" WINDOW {self.window}" if self.time else "") + where
        elif not self.time:
            text += where
        elif self.window.startswith("SESSION"):
            text = f"SELECT {items} FROM ({self._sessions(side, where)})"
            groups.append("session_")
        else:
            hops = self.window.startswith("HOPPING")
            text += f" CROSS JOIN (SELECT UNNEST(range({HOPS if hops else 1})) AS hop) AS hops" + where
            groups.append(f"{self.time} // {SIZE * 1000 // (HOPS if hops else 1)} - hops.hop")
        if groups:
            text += " GROUP BY " + ", ".join(groups)
        if self.having:
            text += " HAVING " + " AND ".join(f"({side(one)})" for one in self.having)
        return text

    def _sessions(self, side: Callable[[Both], str], where: str) -> str:
        """DuckDB's rows with the number of their session: each stream's are one value, a struct."""
        names = [
            "s",
            *(["s.*"] if self.source.theirs == "s" else []),
            *(name for name in ("t", "r", "u", "a") if self._has(name)),
        ]
        keys = [f"{side(one)} AS key_{at}" for at, one in enumerate(self._sessions_by())]
        rows = f"SELECT {', '.join([*names, *keys, f'{self.time} AS time_'])} FROM {side(self.source)}{where}"
        by = ", ".join(f"key_{at}" for at in range(len(keys)))
        over = f"OVER ({f'PARTITION BY {by} ' if by else ''}ORDER BY time_)"
        new = f"SELECT *, CASE WHEN time_ - LAG(time_) {over} <= {GAP * 1000} THEN 0 ELSE 1 END AS new_"
        return f"SELECT *, SUM(new_) {over} AS session_ FROM ({new} FROM ({rows}))"

    def _has(self, name: str) -> bool:
        return re.search(rf"(JOIN|AS) {name}\b", self.source.theirs) is not None

    def _sessions_by(self) -> list[Both]:
        """The keys of the groups, by which sessions are: an alias stands for what it names."""
        named = {alias: one for one, alias in self.items if alias in ("one", "two")}
        return [named.get(one.ours, one) for one in self.groups]

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
        window = pick.choice(WINDOWS)
        return Query(source, tuple(items), time, where, groups, having, window)

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
            # The other stream, the same one, or a part of either.
            stream, other = pick.choice([("t", "t"), ("t", "t"), ("s", "r"), ("s", "r")])
            self._add("s")
            self._add(stream, alias=other)
            left, right = "s", other if other == stream else f"{stream} AS {other}"
            if pick.random() < 0.3:
                right = f"(SELECT * FROM {stream} WHERE {stream}.n > 0 OR w = 'b') AS {other}"
            if pick.random() < 0.2:
                left = "(SELECT * FROM s WHERE NOT b OR x > 0) AS s"
            near = f"s.{on[0]} = {other}.{on[1]} AND abs(s.ts - {other}.ts) <= {SIZE * 1000}"
            ours = f"{left} {how} {right} WITHIN {SIZE} SECONDS ON s.{on[0]} = {other}.{on[1]}"
            beside = ""
            if pick.random() < 0.4:
                self._add("u")
                key = pick.choice(["s.k", f"{other}.k", f"{other}.w"])
                beside = f" {pick.choice(['JOIN', 'LEFT JOIN'])} u ON {key} = u.k"
            theirs = f"{left} {how} {right} ON {near}{beside}"
            return Both(ours + beside, theirs), f"GREATEST(s.ts, {other}.ts)"
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

    def _add(self, stream: str, bare: bool = False, alias: str = "") -> None:
        prefix = "" if bare and self._random.random() < 0.5 else f"{alias or stream}."
        for name, kind in COLUMNS[stream].items():
            if kind in KINDS:
                self._names.setdefault(KINDS[kind], []).append(Both(prefix + name, prefix + name))
        if stream == "s":
            parts = {"text": ("tags[1]", "tags[2]", "meta.w"), "whole": ("nums[1]", "meta->a")}
            for kind, names in parts.items():
                self._names[kind] += [Both(prefix + one, prefix + one.replace("->", ".")) for one in names]
            self._names.setdefault("time", []).append(
                Both(
                    f"{'' if bare else f'{alias or stream}.'}ROWTIME",
                    f"make_timestamp({alias or 's'}.ts * 1000)",
                )
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


WINDOWS = (
    f"TUMBLING (SIZE {SIZE} SECONDS)",
    f"HOPPING (SIZE {SIZE} SECONDS, ADVANCE BY {SIZE * 1000 // HOPS} MILLISECONDS)",
    f"SESSION ({GAP} SECONDS)",
)
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


class Spread(Memory):
    """The rows of a query's one topic in three partitions, each read by and by, those of joins in turns."""

    def _read(self, plan: Any, sinks: Any = ()) -> RowReader:
        reader = RowReader(plan, 3, sinks)
        for topic in reader.lookups:
            reader.feed_lookup(self.content(topic))
        topics = topics_of(plan)
        chosen = random.Random(len(plan.source))
        waiting = []
        for topic in topics:
            for one in self.content(topic):
                where = chosen.randrange(3) if plan.stream.reading.joined is None else 0
                waiting.append(replace(one, partition=where))
        # In the order of time, which a partition's own rows have anyway, cut where it happens.
        waiting.sort(key=lambda one: one.timestamp_ms)
        while waiting:
            some = chosen.randint(1, 5)
            reader.feed(waiting[:some])
            del waiting[:some]
        reader.finish()
        return reader


class Engines:
    """The same rows in both."""

    def __init__(self, rows: Rows, engine: Memory | None = None) -> None:
        engine = engine or Memory()
        self.session = SqlSession(engine)
        assert all(one.error is None for one in self.session.run(DECLARED))
        self.duckdb = duckdb.connect()
        for name, own in rows.items():
            engine.insert(self.session.catalog.relations[name], own)
            columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[name].items())
            self.duckdb.execute(f"CREATE TABLE {name} ({columns})")
            if own:
                frame = pl.DataFrame(own, infer_schema_length=None).to_arrow()
                self.duckdb.register("given", frame)
                self.duckdb.execute(f"INSERT INTO {name} SELECT * FROM given")

    def difference(self, query: Query) -> str:
        """In what the rows differ; empty if they don't."""
        return self.differ(query.ours, query.theirs)

    def differ(self, query: str, other: str) -> str:
        """The same of a query in our SQL and in DuckDB's."""
        outcome = list(self.session.run(query))[-1]
        if outcome.error is not None:
            return f"refused: {outcome.error}"
        ours = Counter(tuple(map(shown, row)) for row in outcome.rows)
        theirs = Counter(tuple(map(shown, row)) for row in self.duckdb.execute(other).fetchall())
        return "" if ours == theirs else f"ours besides {ours - theirs}, DuckDB's besides {theirs - ours}"


def shown(value: Any) -> str:
    """A value as it is compared: numbers to nine digits."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return f"{value + 0.0:.9g}"
    return repr(value)


def shrunk(rows: Rows, query: Query, engine: type[Memory] = Memory) -> tuple[Rows, Query, str]:
    """The least that still differs, as far as leaving out one part or row at a time goes."""
    wrong, smaller = Engines(rows, engine()).difference(query), True
    while smaller:
        smaller = False
        fewer = [(rows, one) for one in query.shorter()]
        for name, own in rows.items():
            fewer += [({**rows, name: [*own[:at], *own[at + 1 :]]}, query) for at in range(len(own))]
        for some, one in fewer:
            try:
                why = Engines(some, engine()).difference(one)
            except duckdb.Error:
                continue
            if why and why.startswith("refused") == wrong.startswith("refused"):
                rows, query, wrong, smaller = some, one, why, True
                break
    return rows, query, wrong


def check(seed: int, queries: int, engine: type[Memory] = Memory) -> None:
    generator = Generator(seed)
    rows = generator.rows()
    engines = Engines(rows, engine())
    for _ in range(queries):
        query = generator.query()
        if engines.difference(query):
            few, least, why = shrunk(rows, query, engine)
            pytest.fail(f"seed {seed}: {least.ours}\n{least.theirs}\n{few}\n{why}")


def start_of(query: Query) -> Both:
    """When a window begins, in milliseconds."""
    if query.window.startswith("SESSION"):
        return Both("window_start", f"MIN({query.time})")
    step = SIZE * 1000 // (HOPS if query.window.startswith("HOPPING") else 1)
    return Both("window_start", f"MIN(({query.time} // {step} - hops.hop) * {step})")


@pytest.mark.parametrize("window", WINDOWS)
def test_estimates_lie_within_their_bounds(window: str) -> None:
    """Of DuckDB's exact values: of a quantile those of the two values around its rank."""
    chosen = random.Random(window)
    times = sorted(START + chosen.randint(0, 120) * 250 for _ in range(800))
    rows: Rows = {"t": [], "u": []}
    rows["s"] = [
        {
            **dict.fromkeys(COLUMNS["s"]),
            "ts": time,
            "k": chosen.choice(["a", "b", None]),
            "n": chosen.randint(0, 10**6),
            "x": chosen.choice([None, chosen.lognormvariate(0, 3), -chosen.random()]),
            "w": chosen.choice("abcd") + str(int(chosen.paretovariate(1)))[:3],
        }
        for time in times
    ]
    engines = Engines(rows)
    exact = [
        ("APPROX_COUNT_DISTINCT(s.n)", "LIST_VALUE(COUNT(DISTINCT s.n), COUNT(DISTINCT s.n))"),
        *(
            (f"PERCENTILE_APPROX(s.x, {rank})", f"LIST_VALUE({', '.join(around)})")
            for rank in (0.5, 0.9)
            for around in [
                [
                    f"LIST_SORT(LIST(s.x) FILTER (s.x IS NOT NULL))[CAST({way}({rank} * (COUNT(s.x) - 1)) AS "
                    "INT) + 1]"
                    for way in ("FLOOR", "CEIL")
                ]
            ]
        ),
    ]
    for where in ("s.n >= 0", "s.n % 3 = 0"):
        source, key = Both("s", "s"), Both("s.k", "s.k")
        query = Query(source, ((key, "one"),), "s.ts", (Both(where, where),), (key,), window=window)
        items = ((start_of(query), "since"), *query.items)
        query = replace(query, items=items + tuple((Both(*pair), f"e{at}") for at, pair in enumerate(exact)))
        outcome = list(engines.session.run(query.ours))[-1]
        assert outcome.error is None, outcome.error
        theirs = {row[:2]: row[2:] for row in engines.duckdb.execute(query.theirs).fetchall()}
        assert len(outcome.rows) == len(theirs) > 0
        for at, row in enumerate(outcome.to_json()["rows"]):
            since = datetime.fromisoformat(row[0]).replace(tzinfo=UTC).timestamp()
            for number, values in enumerate(theirs[round(since * 1000), row[1]]):
                lower, upper = outcome.bounds[f"e{number}"][at]
                none = lower is None and values[0] is None
                held = none or (lower <= values[1] and values[0] <= upper)
                assert held, (query.ours, row, values, lower, upper)


@pytest.mark.parametrize("part", seeds(1, 3))
def test_queries_give_the_rows_that_duckdb_gives(part: int) -> None:
    for seed in range(part * 10, part * 10 + 10):
        check(seed, 7)
        check(seed + 100, 3, Spread)


@pytest.mark.soak
def test_thousands_of_queries_give_the_rows_that_duckdb_gives() -> None:
    for seed in range(1_000, 1_250):
        check(seed, 20)
        check(seed, 5, Spread)


@pytest.mark.soak
@pytest.mark.kafka
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_queries_on_brokers_give_the_rows_that_duckdb_gives(kafka: Any, request: Any, engine: str) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    servers, wrong = ("--bootstrap-servers", kafka.bootstrap_servers), []
    for seed in range(3_000, 3_004):
        generator = Generator(seed)
        rows = generator.rows()
        memory, suffix = Memory(), uuid.uuid4().hex[:8]
        engines = Engines(rows, memory)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
        for topic in COLUMNS:
            kafka.create_topic(f"{topic}_{suffix}", 1)
            for one in memory.content(topic):
                producer.produce(f"{topic}_{suffix}", one.value, one.key, timestamp=one.timestamp_ms)
        assert producer.flush(60) == 0
        queries = [query for query in (generator.query() for _ in range(40)) if query.time][:8]
        script = re.sub(r"KAFKA_TOPIC='(\w)'", rf"KAFKA_TOPIC='\1_{suffix}'", DECLARED)
        script += ";".join(f"{query.ours} EMIT FINAL" for query in queries)
        code, outcomes = ran("-e", script, "--json", "--once", "--engine", engine, *servers)
        assert code == 0, outcomes[-1]
        answered = [one["rows"] for one in outcomes if one["kind"] == "rows"]
        for query, own in zip(queries, answered, strict=True):
            ours = Counter(tuple(map(shown, row)) for row in own)
            theirs = Counter(
                tuple(map(shown, row)) for row in engines.duckdb.execute(query.theirs).fetchall()
            )
            wrong += [(seed, query.ours, ours - theirs, theirs - ours)] if ours != theirs else []
    assert not wrong, wrong

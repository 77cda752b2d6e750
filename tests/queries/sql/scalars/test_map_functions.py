"""MAPs: read from objects, taken apart, made, and written."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import ReceivedMessage
from streamgauge.queries.sql.run.session import SqlSession

from ..scripts import START, last_rows, value

STREAM = """
CREATE STREAM s (id VARCHAR, m MAP<VARCHAR, INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
INSERT INTO s VALUES ('a', MAP('x' := 1, 'y' := NULL)), ('b', NULL), ('c', MAP('z' := 3));
"""
ENTRIES = [{"key": "x", "value": 1}, {"key": "y", "value": None}]


def test_a_column_of_maps() -> None:
    query = (
        "SELECT m['x'], m->x, MAP_KEYS(m), MAP_VALUES(m), CARDINALITY(m), MAP_CONTAINS_KEY(m, 'y'), m FROM s"
    )
    aliased = query.replace("m['x'],", "m['x'] AS a,").replace("m->x,", "m->x AS b,")
    aliased = aliased.replace("MAP_KEYS(m),", "MAP_KEYS(m) AS c,").replace(
        "MAP_VALUES(m),", "MAP_VALUES(m) AS d,"
    )
    aliased = aliased.replace("(m),", "(m) AS e,").replace("'y'),", "'y') AS f,")
    assert last_rows(STREAM + aliased + ";") == [
        [1, 1, ["x", "y"], [1, None], 2, True, ENTRIES],
        [None] * 7,
        [None, None, ["z"], [3], 1, False, [{"key": "z", "value": 3}]],
    ]
    exploded = "SELECT id, EXPLODE(MAP_KEYS(m)) AS k, EXPLODE(MAP_VALUES(m)) AS v FROM s;"
    assert last_rows(STREAM + exploded) == [["a", "x", 1], ["a", "y", None], ["c", "z", 3]]
    assert last_rows(STREAM + "DESCRIBE s;")[1] == ["m", "MAP<VARCHAR, INT>", ""]
    assert last_rows(STREAM + "SELECT SUM(m['x']) AS n FROM s WHERE m['x'] > 0;") == [[1]]


def test_the_topic_has_an_object() -> None:
    printed = last_rows(STREAM + "PRINT 's' FROM BEGINNING LIMIT 1;")
    assert printed[0][-1] == '{"id":"a","m":{"x":1,"y":null}}'


def _type(rng: random.Random, depth: int) -> tuple[str, Any]:
    """A type with MAPs in it at random, and what makes a value of it as JSON has it."""
    kind = rng.choice(["INT", "VARCHAR", "MAP", "MAP", "ARRAY", "STRUCT"]) if depth else "INT"
    if kind in ("INT", "VARCHAR"):
        return (
            kind,
            lambda: rng.choice([None, 1, -7]) if kind == "INT" else rng.choice([None, "", "a", 'é"\\']),
        )
    if kind == "STRUCT":
        parts = {name: _type(rng, depth - 1) for name in ("key", "value", "x")[: rng.randrange(1, 4)]}
        fields = ", ".join(f"{name} {of}" for name, (of, _) in parts.items())
        return f"STRUCT<{fields}>", lambda: _some(rng, {name: made() for name, (_, made) in parts.items()})
    of, made = _type(rng, depth - 1)
    if kind == "MAP":
        keys = ["a", "key", "", "ü.[]"]
        return f"MAP<VARCHAR, {of}>", lambda: _some(
            rng, {k: made() for k in rng.sample(keys, rng.randrange(4))}
        )
    return f"ARRAY<{of}>", lambda: _some(rng, [made() for _ in range(rng.randrange(3))])


def _some(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.15 else value


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_what_was_read(seed: int) -> None:
    """MAPs anywhere in a column's type are objects in the topic of a CREATE STREAM … AS, and so on."""
    rng = random.Random(seed)
    for _ in range(6):
        columns = {f"c{number}": _type(rng, 3) for number in range(3)}
        declared = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
        engine = Memory()
        session = SqlSession(engine)
        script = (
            f"CREATE STREAM s ({declared}) WITH (KAFKA_TOPIC='s');"
            "CREATE STREAM one AS SELECT c0, c1 AS b, CASE WHEN TRUE THEN c2 END AS c FROM s;"
            "CREATE STREAM two AS SELECT COALESCE(a.c0, a.c0) AS c0, a.b, a.c FROM one a;"
            f"CREATE STREAM t ({declared.replace('c1 ', 'b ').replace('c2 ', 'c ')}) WITH (KAFKA_TOPIC='t');"
            "INSERT INTO t SELECT * FROM two;"
        )
        errors = [one.error for one in session.run(script) if one.error is not None]
        assert not errors, (declared, errors)
        rows = [{name: made() for name, (_, made) in columns.items()} for _ in range(5)]
        for row in rows:
            engine._inserted.setdefault("s", []).append(
                ReceivedMessage("s", 0, None, json.dumps(row).encode(), START)
            )
        wanted = [{"c0": row["c0"], "b": row["c1"], "c": row["c2"]} for row in rows]
        for topic in ("one", "two", "t"):
            assert [json.loads(one.value or b"") for one in engine.content(topic)] == wanted, declared


def test_an_array_of_entries_stays_one() -> None:
    given = (
        "CREATE STREAM s (m MAP<VARCHAR, INT>, a ARRAY<STRUCT<key VARCHAR, value INT>>)"
        " WITH (KAFKA_TOPIC='s');"
        "INSERT INTO s VALUES (MAP('x' := 1), ARRAY[STRUCT(key := 'x', value := 2)]);"
    )
    selected = "SELECT a, MAP_ENTRIES(m) AS e, MAP('y' := MAP('z' := 3)) AS m, ARRAY[m] AS l,"
    selected += " ARRAY_CONCAT(ARRAY[m], ARRAY[m]) AS c, STRUCT(m := m) AS t FROM s"
    written = f"CREATE STREAM t AS {selected}; PRINT 't' FROM BEGINNING LIMIT 1;"
    assert json.loads(last_rows(given + written)[0][-1]) == {
        "a": [{"key": "x", "value": 2}],
        "e": [{"key": "x", "value": 1}],
        "m": {"y": {"z": 3}},
        "l": [{"x": 1}],
        "c": [{"x": 1}, {"x": 1}],
        "t": {"m": {"x": 1}},
    }
    described = last_rows(f"{given} CREATE STREAM t AS {selected}; DESCRIBE t;")
    assert [row[1] for row in described] == [
        "ARRAY<STRUCT<key VARCHAR, value INT>>",
        "ARRAY<STRUCT<key VARCHAR, value INT>>",
        "MAP<VARCHAR, MAP<VARCHAR, BIGINT>>",
        "ARRAY<MAP<VARCHAR, INT>>",
        "ARRAY<MAP<VARCHAR, INT>>",
        "STRUCT<m MAP<VARCHAR, INT>>",
    ]


def test_maps_within_other_types() -> None:
    given = (
        "CREATE STREAM s (id INT, a ARRAY<MAP<VARCHAR, INT>>, s STRUCT<n INT, m MAP<VARCHAR, ARRAY<INT>>>)"
        " WITH (KAFKA_TOPIC='s');"
        "INSERT INTO s VALUES (1, ARRAY[MAP('x' := 1), MAP('x' := 2, 'y' := 3)], STRUCT(n := 1, m := MAP('q'"
        " := ARRAY[4, 5]))), (2, NULL, NULL);"
    )
    query = "SELECT id, a[2]['y'] AS y, s->m->q[2] AS q, CARDINALITY(s->m) AS n FROM s;"
    assert last_rows(given + query) == [[1, 3, 5, 1], [2, None, None, None]]
    exploded = "CREATE STREAM t AS SELECT EXPLODE(a) AS m FROM s; PRINT 't' FROM BEGINNING LIMIT 2;"
    assert [row[-1] for row in last_rows(given + exploded)] == ['{"m":{"x":1}}', '{"m":{"x":2,"y":3}}']


def test_maps_are_equal_whatever_the_order_of_their_entries() -> None:
    given = (
        "CREATE STREAM s (id INT, m MAP<VARCHAR, INT>, o MAP<VARCHAR, INT>, l ARRAY<MAP<VARCHAR, INT>>)"
        " WITH (KAFKA_TOPIC='s');"
        "INSERT INTO s VALUES (1, MAP('x' := 1, 'y' := NULL), MAP('y' := NULL, 'x' := 1), NULL),"
        " (2, MAP('x' := 1), MAP('x' := 2), NULL), (3, MAP('x' := 1), NULL, NULL);"
    )
    compared = (
        "m = o AS a, m <> o AS b, m IS NOT DISTINCT FROM o AS c, m IN (o) AS d, NULLIF(m, o) IS NULL AS e"
    )
    assert last_rows(f"{given} SELECT {compared} FROM s;") == [
        [True, False, True, True, True],
        [False, True, False, False, False],
        [None, None, False, None, False],
    ]
    with pytest.raises(SqlError, match="ARRAY<MAP<VARCHAR, INT>> can't be compared as a whole"):
        last_rows(f"{given} SELECT l = l AS a FROM s;")


def test_maps_that_are_made() -> None:
    assert value("MAP('x' := 1, 'y' := NULL)") == ENTRIES
    assert value("MAP['x', 1, 'y', NULL]") == ENTRIES
    assert value("MAP('x' := 1, 'x' := 2)") == [{"key": "x", "value": 2}]
    assert value("MAP('x' := 1)['x']") == value("MAP['x', 1, 'z', 2]['x']") == 1
    assert value("MAP('x' := 1)['y']") is None
    assert value("MAP_CONTAINS_KEY(MAP('x' := NULL), 'x')") is True
    assert value("MAP_ENTRIES(MAP('x' := n))", n=7) == [{"key": "x", "value": 7}]


REFUSED: dict[str, Any] = {
    "SELECT m[id] AS x FROM s": "the key of a MAP must be a constant text",
    "SELECT m->'x' AS x FROM s": "-> before a text in quotes",
    "SELECT MAP_KEYS(ARRAY[1]) AS x FROM s": "MAP_KEYS takes a MAP, got an ARRAY",
    "SELECT MAP(id := 1) AS x FROM s": "the key of a MAP must be a constant text, in single quotes",
    "SELECT MAP() AS x FROM s": "MAP must have a key",
    "SELECT MAP['a', 1, 'b'] AS x FROM s": "[…] takes one place of an ARRAY",
    "SELECT m['x', 'y'] AS x FROM s": "[…] takes one place of an ARRAY",
    "SELECT STRUCT('a' := 1) AS x FROM s": "a field of a STRUCT is named without quotes",
    "INSERT INTO s VALUES ('a', MAP('x' := 'q'))": "the value must be an INT, got 'q'",
    "INSERT INTO s VALUES ('a', ARRAY[1])": "the value must be a MAP<VARCHAR, INT>",
    "CREATE STREAM t (m MAP<INT, INT>) WITH (KAFKA_TOPIC='t')": "the keys of a MAP must be VARCHAR",
    "CREATE STREAM t (m ARRAY<MAP<INT, INT>>) WITH (KAFKA_TOPIC='t')": "the keys of a MAP must be VARCHAR",
    "CREATE STREAM t (m ARRAY<MAP<VARCHAR, INT>>) WITH (KAFKA_TOPIC='t', FORMAT='DELIMITED')": "a MAP is an",
    "CREATE STREAM t (m MAP<VARCHAR, INT>) WITH (KAFKA_TOPIC='t', FORMAT='DELIMITED')": "a MAP is an",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused(statement: str) -> None:
    with pytest.raises(SqlError) as error:
        last_rows(STREAM + statement + ";")
    assert error.value.message.startswith(REFUSED[statement])

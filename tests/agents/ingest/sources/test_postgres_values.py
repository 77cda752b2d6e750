"""PostgreSQL's values as JSON, from the texts that servers write."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

pytest.importorskip("psycopg")

from streamgauge.agents.ingest.sources.postgres_values import TypeInfo, ValueTypes

from ....cases import each

TYPES = {
    1: TypeInfo("int4"),
    2: TypeInfo("numeric"),
    3: TypeInfo("timestamptz"),
    4: TypeInfo("jsonb"),
    5: TypeInfo("bool"),
    6: TypeInfo("text"),
    7: TypeInfo("positive", base=2),
    10: TypeInfo("_int4", element=1),
    11: TypeInfo("_text", element=6),
    12: TypeInfo("_positive", element=7),
    13: TypeInfo("_timestamptz", element=3),
}


def types() -> ValueTypes:
    def look_up(oids: Iterable[int]) -> dict[int, TypeInfo]:
        return {oid: TYPES[oid] for oid in oids if oid in TYPES}

    return ValueTypes(look_up)


@each(
    ("oid", "text", "written"),
    [
        (1, "-7", "-7"),
        (2, "0.10000000000000000000001", "0.10000000000000000000001"),
        (2, "NaN", '"NaN"'),
        (2, "-Infinity", '"-Infinity"'),
        (3, "2026-01-02 03:04:05.000006+00", '"2026-01-02T03:04:05.000006Z"'),
        (3, "0044-03-15 00:00:00+00 BC", '"0044-03-15 00:00:00+00 BC"'),
        (3, "infinity", '"infinity"'),
        (3, "12026-01-02 03:04:05+00", '"12026-01-02T03:04:05Z"'),
        (4, '{"a": 1.50, "b": "\\ud800"}', '{"a": 1.50, "b": "\\ud800"}'),
        (5, "t", "true"),
        (5, "f", "false"),
        (6, 'a"b\nü\u2028', '"a\\"b\\nü\u2028"'),
        (7, "1.0", "1.0"),
        (10, "{}", "[]"),
        (10, "[0:1]={1,NULL}", "[1,null]"),
        (10, "[0:1][2:3]={{1,2},{3,4}}", "[[1,2],[3,4]]"),
        (11, '{a,"b,\\"c","NULL",NULL,"{x}",""}', '["a","b,\\"c","NULL",null,"{x}",""]'),
        (12, "{1.50,NaN}", '[1.50,"NaN"]'),
        (13, '{"2026-01-02 03:04:05+00"}', '["2026-01-02T03:04:05Z"]'),
        (99, "(1,2)", '"(1,2)"'),
    ],
)
def test_values(oid: int, text: str, written: str) -> None:
    given = types().to_json(text, oid)
    assert given == written
    json.loads(given)

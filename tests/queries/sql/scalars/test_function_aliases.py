"""What is suggested in place of another system's function is a query here."""

from __future__ import annotations

import re

from streamgauge.queries.sql.plan.aggregates import NAMES, REFUSED, function_names
from streamgauge.queries.sql.plan.scope import EXPLODE
from streamgauge.queries.sql.plan.stored_columns import SET_FUNCTIONS
from streamgauge.queries.sql.scalars.function_aliases import FLINK, INSTEAD, KSQLDB, unknown_function
from streamgauge.queries.sql.scalars.scalar_functions import FUNCTIONS

WORDS = {"CAST", "CASE", "INTERVAL", "WINDOW", "FILTER", "TIMESTAMP", "SAMPLE", "AS", "TUMBLING"}


def test_what_is_suggested_is_there() -> None:
    known = {*FUNCTIONS, *NAMES, *SET_FUNCTIONS, *WORDS}
    for name, text in INSTEAD.items():
        assert name not in {*FUNCTIONS, *NAMES}, name
        assert not set(re.findall(r"\b([A-Z_]+)\s?\(", text)) - known, text


def test_the_nearest_in_meaning_is_suggested_before_the_nearest_in_letters() -> None:
    assert unknown_function("json_extract", ["REGEXP_EXTRACT"]).count("JSON_VALUE(text, '$.field')") == 1


def test_each_function_of_ksqldb_and_flink_is_here_or_refused_by_name() -> None:
    known = {*FUNCTIONS, *function_names(), *EXPLODE, *INSTEAD, *REFUSED}
    assert not {*KSQLDB.split(), *FLINK.split()} - known

"""Completions at the cursor of a statement: topics, streams and tables, columns, functions, keywords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ...queries.sql.plan.aggregates import function_names
from ...queries.sql.plan.catalog import Catalog, Relation
from ...queries.sql.plan.stored_columns import ESTIMATE, SET_FUNCTIONS
from ...queries.sql.scalars.scalar_functions import FUNCTIONS

STATEMENTS = (
    *(
        "SELECT",
        "CREATE STREAM",
        "CREATE TABLE",
        "CREATE ALERT",
        "INSERT INTO",
        "PRINT",
        "DESCRIBE",
        "EXPLAIN",
    ),
    *("SHOW TOPICS", "SHOW STREAMS", "SHOW TABLES", "SHOW QUERIES", "SHOW FUNCTIONS", "DROP STREAM"),
    *("DROP TABLE", "TERMINATE", "RUN SCRIPT", "SET", "ASSERT VALUES"),
)
_WORDS = (
    *("FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT FINAL", "EMIT CHANGES", "AS SELECT"),
    *("WINDOW TUMBLING (SIZE", "WINDOW HOPPING (SIZE", "WINDOW SESSION (", "GRACE PERIOD", "ADVANCE BY"),
    *("JOIN", "LEFT JOIN", "WITHIN", "ON", "WITH (KAFKA_TOPIC='", "VALUES", "AND", "OR", "NOT", "IS NULL"),
    *("FILTER (WHERE", "CASE WHEN", "LOWER_BOUND(", "UPPER_BOUND("),
)
_OF_TOPIC = re.compile(r"(?:PRINT\s+|KAFKA_TOPIC\s*=\s*)'([^']*)$", re.I)
_OF_RELATION = re.compile(r"(?:FROM|JOIN|INTO|DESCRIBE|DROP\s+STREAM|DROP\s+TABLE|VALUES)\s+(\w*)$", re.I)
_WORD = re.compile(r"[\w.]*$")
_QUOTED = re.compile(r"'[^']*'|--[^\n]*")


def candidates(
    text: str, catalog: Catalog, topics: Callable[[], Iterable[str]], whole: str = ""
) -> list[tuple[str, int, str]]:
    """Return the words that may follow a text, each with the length already typed, and its kind.

    `whole` is the statement including the text after the cursor, whose streams determine the columns.
    `topics` returns the topics' names when needed.

    >>> candidates("SELECT * FR", Catalog(), list)[0]
    ('FROM', 2, 'word')
    """
    if (topic := _OF_TOPIC.search(text)) is not None:
        return _fitting(topic[1], [(name, "topic") for name in topics()])
    bare = _QUOTED.sub("''", text)
    if "'" in bare.replace("''", ""):
        return []  # within a string literal
    named = [(one.name, one.kind) for one in catalog.relations.values()]
    statement = bare.rpartition(";")[2]
    if (relation := _OF_RELATION.search(statement)) is not None:
        return _fitting(relation[1], named)
    match = _WORD.search(statement)
    typed = match[0] if match is not None else ""
    if statement.strip() == typed:
        return _fitting(typed, [(name, "statement") for name in STATEMENTS])
    head, dot, tail = typed.rpartition(".")
    within = _named(whole or text, catalog)
    if dot:
        known = [one for one in within if one.name.lower() == head.lower()] or within
        return _fitting(tail, [(name, "column") for one in known for name in one.columns])
    columns = [(name, "column") for one in within or catalog.relations.values() for name in one.columns]
    functions = [
        (f"{name}(", "function") for name in (*function_names(), *FUNCTIONS, *SET_FUNCTIONS, ESTIMATE)
    ]
    return _fitting(typed, [*columns, *((name, "word") for name in _WORDS), *functions, *named])


def _named(text: str, catalog: Catalog) -> list[Relation]:
    """Return the streams and tables that a statement names."""
    words = {word.lower() for word in re.findall(r"\w+", text.rpartition(";")[2])}
    return [one for name, one in catalog.relations.items() if name in words]


def _fitting(typed: str, known: Sequence[tuple[str, str]]) -> list[tuple[str, int, str]]:
    """Return the words that begin with the typed text, ignoring case, each once."""
    kinds = {name: kind for name, kind in reversed(known) if name.lower().startswith(typed.lower())}
    return [
        (name, len(typed), kinds[name]) for name in dict.fromkeys(name for name, _ in known) if name in kinds
    ]

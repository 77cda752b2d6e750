"""Tables of sketches named in a script: files, a running group's table topic, a query server's."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ....operators.table.schema import aggregates_of
from ....operators.table.stored import read_group_rows, schema_of_stored
from ....operators.windows.window import EARLIEST
from ...answers.answers import Answer
from ...client import Client
from ...views.file_table import final_view
from ...views.view import TableView
from ..errors import SqlError
from ..parse.statements import Statement
from ..plan.catalog import Relation
from ..plan.stored_columns import StoredColumns
from .pull_filter import PullFilter

TOKEN = "STREAMGAUGE_TOKEN"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def file_view(relation: Relation, select: exp.Select | None = None, now: datetime | None = None) -> TableView:
    """The table in a folder of Parquet or Arrow IPC, written by a run or by Spark.

    With a query, only the windows, groups and aggregates that it may need are read. Raises what `table.read`
    raises; invalid sketches are only detected when they are used.
    """
    if select is None or now is None:
        return final_view(relation.name, read_group_rows(relation.sketches))
    schema = schema_of_stored(relation.sketches)
    condition = select.args.get("where")
    where = PullFilter.of(None if condition is None else condition.this, schema)
    begin, end = where.span(now.replace(tzinfo=None))
    since, until = (
        None if at is None or at <= EARLIEST else _EPOCH + timedelta(microseconds=at) for at in (begin, end)
    )
    columns = needed_columns(select, relation.name, schema)
    table = read_group_rows(relation.sketches, since, until, dict(where.keys), columns)
    return final_view(relation.name, table)


def needed_columns(select: exp.Select, name: str, schema: pa.Schema) -> set[str]:
    """The aggregates of a table that a query may need."""
    aggregates = aggregates_of(schema)
    parts = [
        *select.expressions,
        *(select.args[part] for part in ("having", "order") if select.args.get(part)),
    ]
    if any(isinstance(one, exp.Star) for one in parts):
        return {*aggregates}
    columns = StoredColumns(name, aggregates)
    try:
        columns.resolve(parts)
        named = columns.by_name(parts)
    except SqlError:  # an error that the query reports, which may list all columns
        return {*aggregates}
    used = {column for column, _ in [*columns.calls.values(), *named.values()]}
    used |= {own for _, names in columns.filtered.values() for own in names.values()}
    used |= {side for _, *sides in columns.sets.values() for side in sides}
    return (used & {*aggregates}) or {*list(aggregates)[:1]}


def spans_left_out(answer: Answer) -> tuple[str, ...]:
    """Messages about windows of the requested span that a table doesn't have."""
    said = []
    for gap in answer.missing:
        since = "" if gap["from"] is None or str(gap["from"]) < "1000" else f"after {gap['from']} and "
        said.append(f"windows that end {since}by {gap['to']} are not in the answer: {gap['why']}")
    if answer.stale is not None:
        said.append(f"the table is as of {answer.stale['since']}: {answer.stale['why']}")
    return tuple(said)


def server_answer(statement: Statement, table: Any, relation: Relation) -> Answer:
    """A query server's answer to a query of one of its tables, which has another name in the script.

    The token is in STREAMGAUGE_TOKEN. Raises `QueryError` with the server's own message.
    """
    start = int(table.this.meta["start"]) - statement.start
    end = int(table.this.meta["end"]) + 1 - statement.start
    named = relation.server_table.replace('"', '""')
    text = f'{statement.text[:start]}"{named}"{statement.text[end:]}'
    with Client(relation.server, os.environ.get(TOKEN) or None) as client:
        return client.sql(text)


def server_columns(relation: Relation) -> list[tuple[str, str]]:
    """The columns of a query server's table: its keys, and a description of each aggregate."""
    with Client(relation.server, os.environ.get(TOKEN) or None) as client:
        for table in client.tables():
            if table["table"] == relation.server_table:
                keys = [(one["name"], "key") for one in table.get("keys", ())]
                columns = table.get("columns", ())
                return keys + [
                    (one["name"], f"{one['aggregate']}({one.get('column') or ''})") for one in columns
                ]
        known = ", ".join(table["table"] for table in client.tables())
    raise LookupError(f"{relation.server} has no table {relation.server_table}, it has {known or 'none'}")

"""Tables of sketches by their names in a script: files, a running group's table topic, a query server's."""

from __future__ import annotations

import os
from typing import Any

from ....operators.table.stored import read_group_rows
from ...answers.answers import Answer
from ...client import Client
from ...views.file_table import final_view
from ...views.view import TableView
from ..parse.statements import Statement
from ..plan.catalog import Relation

TOKEN = "STREAMGAUGE_TOKEN"


def file_view(relation: Relation) -> TableView:
    """The table in a folder of Parquet or Arrow IPC, a run's or Spark's.

    Raises what `table.read` raises; what isn't a sketch shows when it is used.
    """
    return final_view(relation.name, read_group_rows(relation.sketches))


def spans_left_out(answer: Answer) -> tuple[str, ...]:
    """What is said of windows that a table doesn't have, of the span that was asked."""
    said = []
    for gap in answer.missing:
        since = "" if gap["from"] is None or str(gap["from"]) < "1000" else f"after {gap['from']} and "
        said.append(f"windows that end {since}by {gap['to']} are not in the answer: {gap['why']}")
    if answer.stale is not None:
        said.append(f"the table is that of {answer.stale['since']}: {answer.stale['why']}")
    return tuple(said)


def server_answer(statement: Statement, table: Any, relation: Relation) -> Answer:
    """The answer of a query server to a query of one of its tables, which is called otherwise in the script.

    The token is what STREAMGAUGE_TOKEN holds. Raises `QueryError` with the server's own words.
    """
    start = int(table.this.meta["start"]) - statement.start
    end = int(table.this.meta["end"]) + 1 - statement.start
    named = relation.server_table.replace('"', '""')
    text = f'{statement.text[:start]}"{named}"{statement.text[end:]}'
    with Client(relation.server, os.environ.get(TOKEN) or None) as client:
        return client.sql(text)


def server_columns(relation: Relation) -> list[tuple[str, str]]:
    """What a table of a query server has: its keys, and what each aggregate is."""
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

"""A query in SQL of the tables of a server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlglot import exp

from ...answers.answers import Answer, Limits
from ...views.merge_cache import Deadline, MergeCache
from ...views.view import ServedTable
from ..errors import SqlError, error_at, nearest
from ..parse.dialect import statements_of
from ..parse.statements import Query
from .pull_query import pull_query


def server_query_answer(
    text: str, tables: Mapping[str, ServedTable], rollups: MergeCache, limits: Limits, deadline: Deadline
) -> Answer:
    """The answer of one SELECT whose FROM names a table of the server.

    Raises `SqlError`, including the text, and what `pull_query` raises.
    """
    try:
        statements = statements_of(text)
        if len(statements) != 1 or not isinstance(statements[0].node, Query):
            start = statements[1].start if len(statements) > 1 else 0
            raise SqlError("a server answers one SELECT; run other statements by `streamgauge sql`", start)
        select = statements[0].node.select
        source = select.args.get("from_")
        if source is None:
            raise error_at(select.expressions[0], f"a query must read a table, FROM …; {nearest('', tables)}")
        view = _table(source.this, tables).view()
        return pull_query(select, view, datetime.now(UTC), rollups, limits, deadline)
    except SqlError as error:
        raise error.of_text(text) from None


def _table(node: exp.Expr, tables: Mapping[str, ServedTable]) -> ServedTable:
    """The table that FROM names; a name of several words with dots between them needs no quotes."""
    if not isinstance(node, exp.Table):
        raise error_at(node, "FROM must name a table of this server")
    name = ".".join(part.name for part in node.parts)
    by_lower = {one.lower(): one for one in tables}
    known = name if name in tables else by_lower.get(name.lower())
    if known is None:
        raise error_at(node, f"there is no table {name}; {nearest(name, tables)}")
    if len(node.parts) > 1:
        whole = exp.to_identifier(name, quoted=True)
        whole.meta.update(node.parts[0].meta)
        for argument, value in (("this", whole), ("db", None), ("catalog", None)):
            node.set(argument, value)
    return tables[known]

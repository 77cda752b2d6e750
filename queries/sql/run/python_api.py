"""Statements in a Python program: the last statement's stream, or its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....operators.kafka.settings import servers
from ..errors import SqlError
from ..parse.dialect import statements_of
from ..parse.statements import CreateAlert, CreateAs, InsertSelect, Query, Statement
from ..plan.catalog import Relation
from ..plan.logical_plan import LogicalPlan
from .brokers import Brokers
from .memory import Memory
from .query_sinks import keeping, sinks_of
from .session import SqlSession


def run_last(text: str, bootstrap_servers: str, config: Mapping[str, Any] | None, stream_class: Any) -> Any:
    """See `sql_query.sql`; `stream_class` has fields for the selection and the sinks."""
    statements = statements_of(text)
    if not statements:
        raise SqlError("there must be a statement", 0, 1, text)
    settings = {**(config or {}), "bootstrap.servers": servers(bootstrap_servers)}
    # Only the names defined by earlier statements are needed: their output isn't computed.
    session = SqlSession(Memory(), bootstrap_servers, config, stream_class)
    for statement in statements[:-1]:
        if not isinstance(statement.node, Query):
            _outcomes(session, statement, text)
    last = statements[-1]
    try:
        if isinstance(last.node, CreateAs | CreateAlert | InsertSelect):
            plan, topic = session.planned(last.node)
            more = keeping(last.node, plan) if isinstance(last.node, CreateAs) else []
            return _stream(plan, topic, more)
        if (
            isinstance(last.node, Query)
            and last.node.select.args.get("from_")
            and not _stored(session, last.node)
        ):
            plan = session.planned(last.node)[0]
            if not plan.whole:
                return _stream(plan, "")
    except SqlError as error:
        raise error.of_text(text) from None
    on_brokers = SqlSession(Brokers(settings, until="latest"), bootstrap_servers, config, stream_class)
    on_brokers.catalog = session.catalog
    return _outcomes(on_brokers, last, text).frame()


def _stored(session: SqlSession, node: Query) -> bool:
    source = node.select.args.get("from_")
    name = source.this.name.lower() if source is not None else ""
    relation: Relation | None = session.catalog.relations.get(name)
    return relation is not None and bool(relation.stored)


def _stream(plan: LogicalPlan, topic: str, more: Sequence[Any] = ()) -> Any:
    sinks = (*sinks_of(plan, topic), *more) if topic else ()
    return replace(plan.stream, selection=plan.selection, sinks=sinks)  # type: ignore[call-arg]


def _outcomes(session: SqlSession, statement: Statement, text: str) -> Any:
    last = None
    try:
        for outcome in session.execute(statement):
            last = outcome
    except SqlError as error:
        raise error.of_text(text) from None
    return last

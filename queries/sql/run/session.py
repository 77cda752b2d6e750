"""Running statements one after the other: the names they define, and the result of each."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from confluent_kafka import KafkaException
from sqlglot import exp

from ....operators.definition.stream import Stream
from ....operators.table.schema import END, START
from ....sketches.core.errors import StreamgaugeError
from ...views.kept_windows import with_kept
from ...views.view import TableView
from ..errors import SqlError, error_at, errors_at, nearest
from ..parse.dialect import parsed, split
from ..parse.statements import (
    CreateAlert,
    CreateAs,
    CreateSource,
    CreateView,
    Define,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Print,
    Query,
    RunScript,
    SetOption,
    Show,
    Statement,
    Terminate,
    Word,
)
from ..parse.variables import define
from ..plan.aggregates import function_names
from ..plan.catalog import (
    Catalog,
    Relation,
    check_key_format,
    check_options,
    column_named,
    relation_of,
    time_column,
)
from ..plan.logical_plan import LogicalPlan, plan_text
from ..plan.planner import Planner
from ..plan.selection import ResultSet
from ..plan.union import union_plans
from ..plan.view_expansion import check_view, view_rows
from ..scalars.scalar_functions import FUNCTIONS
from ..scalars.scalars import a_type, holds, sql_type
from ..scalars.time_functions import java_format
from .alerts import alert_plan, alert_relation
from .constants import constants
from .engine import Engine
from .file_query import file_result, reads_files
from .insert_values import rows_of_values
from .pull_query import described, pull_query
from .query_sinks import check_kind, keeping, sinks_of, with_edges, writing
from .schema_inference import SAMPLED, inferred_create
from .statement_result import StatementResult, rows_of
from .stored_tables import file_view, server_answer, server_columns, spans_left_out

_OF_THE_ENGINE = (
    *(StreamgaugeError, ValueError, TypeError, LookupError, OSError),
    *(pl.exceptions.PolarsError, KafkaException),
)
"""Errors that running a statement may raise: of brokers, of files, of rows."""

_UNION = ".union."
"""The suffix of a stream's name, with a number, for the further SELECTs of its UNION ALL."""
_AS_OPTIONS = (
    *("KAFKA_TOPIC", "VALUE_FORMAT", "KEY", "TIMESTAMP", "TIMESTAMP_FORMAT", "FORMAT", "SKETCHES", "KEEP"),
    *("KEY_FORMAT", "WRAP_SINGLE_VALUE"),
)


class SqlSession:
    """The names of a script, and the engine that it runs on."""

    def __init__(
        self,
        engine: Engine,
        bootstrap_servers: str = "localhost:9092",
        config: Mapping[str, Any] | None = None,
        stream_class: type[Stream] = Stream,
    ) -> None:
        self.catalog = Catalog()
        self._engine = engine
        self._scripts: list[Path] = []
        self._registry = ""
        self._variables: dict[str, str] = {}
        self._planner = Planner(self.catalog, bootstrap_servers, config, stream_class)

    def run(self, text: str) -> Generator[StatementResult]:
        """The result of each statement, in order, up to the first error, which is the last outcome."""
        try:
            parts = split(text)
        except SqlError as error:
            yield StatementResult(text.strip(), "error", error=error.of_text(text))
            return
        start = end = 0
        kept: dict[str, tuple[int, int]] = {}
        """The positions of the queries that write, by name."""
        for tokens in parts:
            start, end = tokens[0].start, tokens[-1].end + 1
            try:
                for outcome in self.execute(parsed(text, tokens, self._variables)):
                    yield outcome
                    if outcome.kind == "error":  # in a script within this one
                        return
                for name, _ in self._engine.queries():
                    kept.setdefault(name, (start, end))
            except SqlError as error:
                yield StatementResult(text[start:end], "error", error=error.of_text(text))
                return
            except _OF_THE_ENGINE as error:
                # Queries of earlier statements start with the first statement that needs their rows.
                start, end = kept.get(getattr(error, "stream", ""), (start, end))
                wrong = SqlError(str(error).split("\n")[0], start, start + len(tokens[0].text), text)
                yield StatementResult(text[start:end], "error", error=wrong)
                return
        try:
            self._engine.start()
        except _OF_THE_ENGINE as error:
            start, end = kept.get(getattr(error, "stream", ""), (start, end))
            wrong = SqlError(str(error).split("\n")[0], start, end, text)
            yield StatementResult(text[start:end], "error", error=wrong)

    def execute(self, statement: Statement) -> Iterator[StatementResult]:
        """The result of one statement. Raises `SqlError`, and what the engine raises."""
        node, text = statement.node, statement.text
        if isinstance(node, Query):
            yield from self._query(node, statement)
        elif isinstance(node, Print):
            of_messages = ("partition", "offset", "timestamp", "key", "value")
            messages = list(self._engine.messages(str(node.topic), node.beginning, node.limit))
            yield StatementResult(text, "rows", of_messages, messages)
        elif isinstance(node, Show):
            columns, rows = self._shown(str(node.what))
            yield StatementResult(text, "rows", columns, rows)
        elif isinstance(node, Describe):
            relation = self.catalog.get(str(node.name), node.name)
            if relation.stored:
                with errors_at(node.name):
                    yield StatementResult(text, "rows", ("column", "is"), self._described(relation))
                return
            rows = [
                (
                    name,
                    sql_type(kind),
                    "key" if name == relation.key else "time" if name == relation.time else "",
                )
                for name, kind in relation.columns.items()
            ]
            yield StatementResult(text, "rows", ("column", "type", "role"), rows)
        elif isinstance(node, RunScript):
            yield from self._script(node)
        elif isinstance(node, Explain):
            plan, topic = self.planned(node.of)
            explained = f"{plan.source}\n\n{plan_text(plan, topic)}"
            yield StatementResult(text, "rows", ("python",), [(explained,)])
        else:
            self._done(statement)
            yield StatementResult(text, "done")

    def planned(self, node: Query | CreateAs | CreateAlert | InsertSelect) -> tuple[LogicalPlan, str]:
        """The plan of a query, and the topic that it writes to, empty if it writes to none."""
        if not isinstance(node, CreateAlert) and node.others:
            raise error_at(
                node.others[0].expressions[0],
                "UNION ALL runs as several queries: write a statement for each, INSERT INTO … SELECT, here",
            )
        if isinstance(node, Query):
            plan = self._planner.plan(node.select, ends=True)
            self._check_shown(plan, node.select)
            return plan, ""
        if isinstance(node, CreateAlert):
            plan = self._planner.plan(node.select)
            self._check_topic(node.name, plan)
            return alert_plan(node, plan)
        return self._finished(node, self._planner.plan(node.select))

    def _finished(self, node: CreateAs | InsertSelect, plan: LogicalPlan) -> tuple[LogicalPlan, str]:
        """The plan that writes its rows, and the topic."""
        self._check_topic(node.name, plan)
        if isinstance(node, CreateAs):
            check_options(node.options, _AS_OPTIONS)
            plan = with_edges(plan, node.name)
            check_kind(node, plan)
            topic = str(node.options.get("KAFKA_TOPIC", node.name))
            key = node.options.get("KEY")
            names: tuple[str, ...] = (
                () if key is None else (column_named(str(key), plan.columns, key, str(node.name)),)
            )
            if names and plan.partition:
                raise error_at(key, "KEY says the same as PARTITION BY; leave one of them out")
            names = names or plan.partition
            of_key = plan.columns.get(names[0]) if len(names) == 1 else None
            check_key_format(node.options, of_key)
            return writing(plan, topic, names, node.name, plan.columns), topic
        target = self._written(node.name)
        plan = with_edges(plan, node.name)
        wanted = dict(target.columns)
        for name in plan.columns:
            if name not in wanted and not (name in (START, END) and plan.selection is not None):
                raise error_at(node.name, f"{target.name} has no column {name}; it has {', '.join(wanted)}")
        if missing := [name for name in wanted if name not in plan.columns]:
            raise error_at(
                node.name, f"{target.name} has a column {missing[0]}, which the SELECT doesn't give"
            )
        for name, given in plan.columns.items():
            if name in wanted and not holds(wanted[name], given):
                raise error_at(
                    node.name,
                    f"{name} of {target.name} is {a_type(wanted[name])}, and the SELECT gives "
                    f"{a_type(given)}; write CAST(… AS {sql_type(wanted[name])}) AS {name}",
                )
        if target.format != "JSON":
            raise error_at(node.name, f"{target.name} is of {target.format}: rows are written as JSON")
        keys = (target.key,) if target.key else plan.partition
        if target.key and plan.partition and plan.partition != keys:
            raise error_at(
                node.select.args["partition_by"][0],
                f"the key of {target.name} is {target.key}: PARTITION BY that, or leave it out",
            )
        return writing(plan, target.topic, keys, node.name, {**plan.columns, **wanted}), target.topic

    def _planned_all(self, node: CreateAs | InsertSelect) -> tuple[list[LogicalPlan], str]:
        """The plans of a statement that writes rows, one for each SELECT of a UNION ALL, and the topic."""
        if not node.others:
            plan, topic = self.planned(node)
            return [plan], topic
        selects = [node.select, *node.others]
        plans = union_plans([self._planner.plan(one) for one in selects], selects)
        finished = [self._finished(node, plan) for plan in plans]
        return [plan for plan, _ in finished], finished[0][1]

    def _union(self, node: Query, statement: Statement) -> StatementResult:
        """The rows of all SELECTs of a UNION ALL, in the order of the SELECTs."""
        selects = [node.select, *node.others]
        plans = union_plans([self._planner.plan(one) for one in selects], selects)
        if emitting := [one for one in selects if one.args.get("emit") is not None]:
            raise error_at(
                emitting[0].args["emit"],
                "EMIT of a UNION ALL: write CREATE STREAM … AS SELECT … UNION ALL …, and SELECT from that "
                "stream",
            )
        results = [_joined(self._results(plan, node.select)) for plan in plans]
        rows = pl.concat(
            [one.rows for one in results if one.rows.height] or [results[0].rows], how="vertical_relaxed"
        )
        warnings = tuple(warning for one in results for warning in one.warnings)
        return rows_of(statement.text, ResultSet(rows, {}, warnings))

    @staticmethod
    def _check_shown(plan: LogicalPlan, select: exp.Select) -> None:
        """Raise `SqlError` for PARTITION BY in a query that writes no messages."""
        if plan.partition:
            raise error_at(
                select.args["partition_by"][0],
                "PARTITION BY sets the key of written messages: write CREATE STREAM … AS, or leave it out",
            )

    @staticmethod
    def _check_topic(name: Word, plan: LogicalPlan) -> None:
        """Raise `SqlError` for a query of files that would run as a consumer."""
        if reads_files(plan):
            raise error_at(
                name,
                "files can be read only by a SELECT; to write a topic or an alert from them, send their "
                "rows to a topic first, with `streamgauge ingest`",
            )

    def _query(self, node: Query, statement: Statement) -> Iterator[StatementResult]:
        if node.others:
            yield self._union(node, statement)
            return
        table = node.select.args["from_"].this if node.select.args.get("from_") else None
        if (
            table is not None
            and isinstance(table, exp.Table)
            and table.name.lower() in self.catalog.relations
        ):
            relation = self.catalog.get(table.name, table)
            if relation.stored:
                yield rows_of(statement.text, self._pulled(node, statement, table, relation))
                return
        text = statement.text
        if table is None and node.select.expressions:
            yield rows_of(text, constants(node.select, datetime.now(UTC)))
            return
        plan = self._planner.plan(node.select, ends=True)
        if plan.limit is None:
            for number, result in enumerate(self._results(plan, node.select)):
                yield rows_of(text, result, begun=number > 0)
        else:
            yield rows_of(text, _joined(self._results(plan, node.select), plan.limit))

    def _results(self, plan: LogicalPlan, select: exp.Select) -> Iterator[ResultSet]:
        """The rows of a query, of files at once."""
        self._check_shown(plan, select)
        if not reads_files(plan):
            yield from self._engine.rows(plan)
            return
        if plan.push:
            raise error_at(select.args["emit"], "EMIT is only for topics, because files end: leave it out")
        with errors_at(select.args["from_"].this):
            yield file_result(plan)

    def _script(self, node: RunScript) -> Iterator[StatementResult]:
        path = Path(str(node.file)).resolve()
        if path in self._scripts:
            raise error_at(node.file, f"{node.file} runs itself; take the RUN SCRIPT out of one of them")
        with errors_at(node.file):
            text = script_text(path)
        self._scripts.append(path)
        try:
            yield from self.run(text)
        finally:
            self._scripts.pop()

    def _pulled(self, node: Query, statement: Statement, table: Any, relation: Relation) -> ResultSet:
        """The answer of a stored table, wherever it is."""
        with errors_at(table):
            if relation.server:
                answer = server_answer(statement, table, relation)
                return ResultSet(answer.rows, answer.bounds, spans_left_out(answer))
            now = datetime.now(UTC)
            view = self._view(relation, node.select, now)
        answer = pull_query(node.select, view, now)
        return ResultSet(answer.rows, answer.bounds, spans_left_out(answer))

    def _view(
        self, relation: Relation, select: exp.Select | None = None, now: datetime | None = None
    ) -> TableView:
        if not relation.group:
            return file_view(relation, select, now)
        view = replace(self._engine.view(relation.group), name=relation.name)
        return with_kept(view, relation.sketches) if relation.sketches else view

    def _described(self, relation: Relation) -> list[tuple[str, str]]:
        if relation.server:
            return server_columns(relation)
        return described(self._view(relation))

    def _shown(self, what: str) -> tuple[tuple[str, ...], list[Any]]:
        if what == "TOPICS":
            return ("topic", "partitions"), list(self._engine.topics())
        if what == "VARIABLES":
            return ("variable", "value"), list(self._variables.items())
        if what == "QUERIES":
            return ("query", "topic"), list(self._engine.queries())
        if what == "FUNCTIONS":
            rows = [(name, "aggregate") for name in function_names()] + [
                (name, "scalar") for name in FUNCTIONS
            ]
            return ("function", "kind"), sorted(rows)
        relations = self.catalog.of_kind(what.lower().removesuffix("s"))
        named = [(one.name, one.topic or one.stored or one.path, one.format) for one in relations]
        return ("name", "topic", "format"), named

    def _done(self, statement: Statement) -> None:
        node = statement.node
        if isinstance(node, CreateSource):
            self._check_columns(node)
            relation = relation_of(node, statement.text, self._registry)
            self.catalog.add(relation, node.name, node.replace, node.if_not_exists)
        elif isinstance(node, CreateAs):
            known = self.catalog.relations.get(str(node.name).lower())
            if known is not None and node.if_not_exists:
                return
            if str(node.name) in dict(self._engine.queries()):
                raise error_at(
                    node.name,
                    f"a query of this script writes {node.name} already: change that statement, and run the "
                    "script again",
                )
            plans, topic = self._planned_all(node)
            plan = plans[0]
            form = node.options.get("VALUE_FORMAT") or node.options.get("FORMAT")
            if form is not None and str(form).upper() != "JSON":
                raise error_at(form, f"VALUE_FORMAT of what is written must be JSON, got {form}")
            time = START if plan.selection is not None else plan.time
            if (named := node.options.get("TIMESTAMP")) is not None:
                if plan.selection is not None:
                    raise error_at(named, "TIMESTAMP is of a stream: the time of a window is its start")
                time = time_column(named, plan.columns, str(node.name))
            time_format = plan.time_format if time == plan.time else ""
            if (pattern := node.options.get("TIMESTAMP_FORMAT")) is not None:
                if named is None or plan.columns[time] != pl.String():
                    raise error_at(pattern, "TIMESTAMP_FORMAT is for a TIMESTAMP column of type VARCHAR")
                with errors_at(pattern):
                    java_format(str(pattern))
                time_format = str(pattern)
            relation = Relation(
                str(node.name),
                node.kind,
                topic,
                plan.columns,
                time=time,
                time_format=time_format,
                lost_time="" if time else plan.lost_time,
                text=statement.text,
                windowed=plan.selection is not None,
            )
            self.catalog.add(relation, node.name, node.replace, False)
            sinks = [*sinks_of(plan, topic), *keeping(node, plan)]
            self._engine.keep(str(node.name), plan, sinks, topic)
            for number, other in enumerate(plans[1:], 2):
                self._engine.keep(f"{node.name}{_UNION}{number}", other, sinks_of(other, topic), topic)
        elif isinstance(node, CreateAlert):
            plan, topic = self.planned(node)
            self.catalog.add(alert_relation(node, plan, topic, statement.text), node.name, False, False)
            self._engine.keep(str(node.name), plan, sinks_of(plan, topic), topic)
        elif isinstance(node, Terminate):
            names = [name for name, _ in self._engine.queries()]
            if str(node.name) and str(node.name) not in names:
                raise error_at(node.name, f"no query is called {node.name}; {nearest(str(node.name), names)}")
            with errors_at(node.name):
                ended = [one for one in names if one.partition(_UNION)[0] == str(node.name)]
                self._engine.terminate(ended if str(node.name) else names)
        elif isinstance(node, InsertSelect):
            plans, topic = self._planned_all(node)
            base = f"insert_into_{node.name}"
            for plan in plans:
                name = f"{base}_{sum(one.startswith(f'{base}_') for one, _ in self._engine.queries())}"
                self._engine.keep(name, plan, sinks_of(plan, topic), topic)
        elif isinstance(node, InsertValues):
            self._values(node)
        elif isinstance(node, Drop) and node.kind == "view":
            if self.catalog.views.pop(str(node.name).lower(), None) is None and not node.if_exists:
                raise error_at(
                    node.name, f"no view is called {node.name}; {nearest(str(node.name), self.catalog.views)}"
                )
        elif isinstance(node, Drop):
            relation_known = self.catalog.relations.get(str(node.name).lower())
            if relation_known is None and node.if_exists:
                return
            relation = self.catalog.get(str(node.name), node.name)
            if relation.kind != node.kind:
                raise error_at(
                    node.name, f"{relation.name} is a {relation.kind}; write DROP {relation.kind.upper()}"
                )
            if relation.name in dict(self._engine.queries()):
                raise error_at(node.name, f"a query of this script writes {relation.name}; end it first")
            del self.catalog.relations[str(node.name).lower()]
        elif isinstance(node, CreateView):
            check_view(node.select, self.catalog)
            union = node.select.args.get("union")
            self._planner.plan(view_rows(str(node.name), node.select) if union else node.select)
            self.catalog.add_view(node.name, node.select, node.replace)
        elif isinstance(node, Define):
            define(node, self._variables)
        elif isinstance(node, SetOption):
            if str(node.name) == "schema.registry.url":
                self._registry = str(node.value)
                return
            with errors_at(node.name):
                self._engine.configure(str(node.name), str(node.value))

    def _check_columns(self, node: CreateSource) -> None:
        """Raise `SqlError` with the statement to write, for JSON without columns."""
        form = node.options.get("VALUE_FORMAT") or node.options.get("FORMAT") or "JSON"
        if node.columns or "KAFKA_TOPIC" not in node.options or str(form).upper() != "JSON":
            return
        with errors_at(node.name):
            topic = str(node.options["KAFKA_TOPIC"])
            proposed = inferred_create(node, self._engine.messages(topic, True, SAMPLED))
        raise error_at(
            node.name,
            f"{node.name} must name its columns; the messages in {topic} have: {proposed}",
        )

    def _written(self, name: Word) -> Relation:
        """The relation that rows are written to."""
        relation = self.catalog.get(str(name), name)
        if relation.stored:
            raise error_at(name, f"{relation.name} is a stored table of sketches, which takes no rows")
        if relation.path:
            raise error_at(name, f"{relation.name} is read from files, which take no rows")
        return relation

    def _values(self, node: InsertValues) -> None:
        relation = self._written(node.name)
        if relation.registered is not None and not node.expected:
            raise error_at(
                node.name, f"{relation.name} is of {relation.format}: rows are written as JSON or DELIMITED"
            )
        names, rows = rows_of_values(node, relation)
        if node.expected:
            self._engine.expect(relation, names, rows, node.name)
        else:
            self._engine.insert(relation, [dict(zip(names, row)) for row in rows])


def script_text(path: Path) -> str:
    """The statements of a file. Raises `ValueError` if it can't be read."""
    try:
        return path.read_text()
    except OSError as error:
        raise ValueError(f"the script {path} can't be read: {error.strerror}") from None


def _joined(results: Iterator[ResultSet], limit: int | None = None) -> ResultSet:
    """The first rows, or all of them, in one result."""
    rows: list[pl.DataFrame] = []
    bounds: dict[str, list[Any]] = {}
    warnings: tuple[str, ...] = ()
    for result in results:
        left = None if limit is None else limit - sum(part.height for part in rows)
        rows.append(result.rows[:left])
        warnings = result.warnings or warnings  # they are about all messages so far
        for name, pairs in result.bounds.items():
            bounds.setdefault(name, []).extend(pairs[:left])
        if left is not None and left <= result.rows.height:
            break
    filled = [one for one in rows if one.height] or rows[:1]
    frame = pl.concat(filled, how="vertical_relaxed") if filled else pl.DataFrame()
    return ResultSet(frame, bounds, warnings)

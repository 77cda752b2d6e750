"""`streamgauge sql`: statements on brokers, or, for their tests, on none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from ...operators.watching.terminal import write_json, write_line
from ...sketches.core.extras import naming_extras
from ..ending import at_once, in_order
from .run import RunEngine
from .settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ...queries.sql.run.engine import Engine
    from ...queries.sql.run.statement_result import StatementResult


def sql(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A script; - is standard input.")
    ] = None,
    execute: Annotated[
        str | None, typer.Option("-e", "--execute", metavar="TEXT", help="Statements, with ; between them.")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run this script without a broker and check ASSERT VALUES."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop queries after the data that exists now.")
    ] = False,
    engine: Annotated[
        RunEngine, typer.Option(help="Engine for queries: consumers, or Spark.")
    ] = RunEngine.local,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Checkpoint folder for queries on Spark."),
    ] = None,
    group: Annotated[
        str, typer.Option(metavar="GROUP", help="Group under which writing queries resume.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per statement.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print rows as CSV, with a header.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File for the last rows: .arrow, .parquet or .csv."),
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Run SQL statements in order, or open a console.

    docs/sql.md describes the dialect. A SELECT … EMIT FINAL or EMIT CHANGES runs until Ctrl-C, unless it has
    a LIMIT; without EMIT it answers from the data that exists now. Queries that write, CREATE … AS SELECT and
    INSERT INTO … SELECT, run together until Ctrl-C. With `--once` they run one after another. The exit code
    is 1 after the first error, which ends the script.

        streamgauge sql

        streamgauge sql -e "SHOW TOPICS"

        streamgauge sql counts.sql --group counts

        streamgauge sql -e "PRINT 'posts' FROM BEGINNING LIMIT 3" --json

        streamgauge sql --test counts.test.sql
    """
    given = [one for one in (file, execute, test) if one is not None]
    typed = not given and sys.stdin.isatty() and sys.stdout.isatty()
    if len(given) != 1 and not typed:
        raise ValueError("sql: pass one of FILE, -e TEXT and --test FILE, or start it in a terminal")
    if output is not None and output.suffix not in OUTPUTS:
        raise ValueError(f"sql: --output takes a file that ends in {', '.join(OUTPUTS)}, got {output}")
    if engine is RunEngine.spark and group:
        raise ValueError("sql: --group is for consumers; queries on Spark resume with --state FOLDER")
    if engine is RunEngine.local and state is not None:
        raise ValueError("sql: --state is for --engine spark; consumers resume with the same --group NAME")
    with at_once():
        from ...queries.sql.run.brokers import Brokers
        from ...queries.sql.run.consumer_runs import ConsumerRuns, QueryRuns
        from ...queries.sql.run.memory import Memory
        from ...queries.sql.run.session import SqlSession, script_text
        from ...queries.sql.run.statement_result import in_one, joined

    if typed:
        text = ""
    elif execute is not None:
        text = execute
    elif file is not None and str(file) == "-":
        text = sys.stdin.read()
    else:
        text = script_text(file or test)  # type: ignore[arg-type]
    # CSV alone needs no complete answer: its rows are written as they are read.
    show = write_csv if as_csv else in_one(write_json_line if as_json else write_table)
    settings = kafka_settings(bootstrap_servers, config, config_file)
    failed = False
    with in_order() as stack, suppress(KeyboardInterrupt):
        if engine is RunEngine.spark and test is None:
            from ..sql.spark_runs import SparkRuns, spark_session

            runs: QueryRuns = SparkRuns(stack.enter_context(spark_session(state)), state)
        else:
            runs = ConsumerRuns(group)
        brokers = Brokers(settings, "latest" if once else None, runs)
        runner: Engine = Memory() if test is not None else brokers
        if test is None:
            stack.callback(brokers.stop)
        more = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
        session = SqlSession(runner, settings["bootstrap.servers"], more)
        if typed:
            with naming_extras():
                from ..sql.console import run_console

            run_console(session, brokers.topics, show)
            return
        parts: list[StatementResult] = []
        for outcome in session.run(text):
            failed = outcome.kind == "error"
            show(outcome)
            if output is not None and outcome.kind == "rows":
                parts = [*parts, outcome] if outcome.begun else [outcome]
                if not outcome.more:
                    write_file(output, joined(parts))
        if not failed and test is None:
            brokers.wait()
    if failed:
        raise typer.Exit(1)


OUTPUTS = (".arrow", ".parquet", ".csv")


def write_file(path: Path, outcome: StatementResult) -> None:
    """The rows of one statement in a file; readers see all of them or those before."""
    import polars as pl

    frame = outcome.frame()
    unfinished = path.with_name(f".{path.name}.unfinished")
    if path.suffix == ".csv":
        with unfinished.open("w", newline="") as file:
            write_rows(file, frame.columns, frame.rows())
    elif path.suffix == ".parquet":
        frame.write_parquet(unfinished)
    else:
        frame.write_ipc(unfinished, compat_level=pl.CompatLevel.oldest())
    unfinished.replace(path)


def write_json_line(outcome: StatementResult) -> None:
    """An outcome as a line of JSON."""
    write_json(outcome.to_json(), flush=True)


def write_warnings(outcome: StatementResult) -> None:
    """What is not in the rows, on standard error."""
    for warning in outcome.warnings:
        write_line(f"warning: {warning}", sys.stderr)


def write_csv(outcome: StatementResult) -> None:
    """Rows as CSV, lists and structs as JSON; an error on standard error."""
    if outcome.error is not None:
        write_error(outcome.error)
    if outcome.kind != "rows":
        return
    if not outcome.more:
        write_warnings(outcome)
    write_rows(sys.stdout, () if outcome.begun else outcome.columns, outcome.rows)
    sys.stdout.flush()


def write_rows(file: TextIO, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows as CSV, with a header if there are names of columns."""
    import csv
    import json

    from ...operators.formats.jsonable import jsonable

    out = csv.writer(file, lineterminator="\n")
    if columns:
        out.writerow(columns)
    for row in rows:
        plain = [jsonable(value) for value in row]
        out.writerow([json.dumps(one) if isinstance(one, list | dict) else one for one in plain])


def write_table(outcome: StatementResult) -> None:
    """Rows as a table with rounded estimates, a program's text as it is, an error on standard error."""
    import json

    from rich import box
    from rich.table import Table

    from ...operators.formats.jsonable import jsonable
    from ...operators.rendering.answers import bounded
    from ...operators.rendering.names import visible_name
    from ...operators.watching.console import TerminalConsole

    if outcome.error is not None:
        write_error(outcome.error)
    elif outcome.kind == "done":
        statement = " ".join(outcome.statement.split())
        write_line(f"done: {statement if len(statement) <= 100 else f'{statement[:99]}…'}")
    elif list(outcome.columns) == ["python"]:
        for line in str(outcome.rows[0][0]).splitlines():
            write_line(line)
    else:
        table = Table(*map(visible_name, outcome.columns), header_style="bold", box=box.SIMPLE_HEAD)
        for number, row in enumerate(outcome.rows):
            cells = []
            for name, value in zip(outcome.columns, row):
                plain = jsonable(value)
                cell = plain if isinstance(plain, str) else "NULL" if plain is None else json.dumps(plain)
                if name in outcome.bounds and value is not None:
                    low, high = outcome.bounds[name][number]
                    cell = cell if low == high else bounded(value, low, high)
                cells.append(visible_name(cell) if cell else "")
            table.add_row(*cells)
        TerminalConsole().print(table)
        write_warnings(outcome)


def write_error(error: Exception) -> None:
    """An error with its line of the statement, the words underlined."""
    for line in f"error: {error}".splitlines():
        write_line(line, sys.stderr)

"""`streamgauge query`: the answers of a stored table of sketches, each with its bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TablePath = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="A Parquet or Arrow IPC file of sketches, or a folder of them."),
]
Since = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Windows from here on, such as 2026-06-01T12:00 (UTC)."),
]
Until = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Windows up to here.")]
By = Annotated[
    list[str] | None, typer.Option(metavar="KEY", help="Keep this key; others are merged. Repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")]


def query(
    table: TablePath,
    every: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Merge into windows of this length, such as 1h.")
    ] = None,
    by: By = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Ask a stored table of sketches: one line a window and group, every answer with its bounds.

    A table is what a stream wrote: the folder of a `ParquetSink`, or a file of `write_parquet`. Coarser
    windows and fewer keys are merged from the sketches, at no further error.

        streamgauge query trades

        streamgauge query trades --every 1h --by symbol

        streamgauge query trades --from 2026-06-01T12:00 --to 2026-06-01T13:00 --json
    """
    import json

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ...operators.table import query as ask
    from ...operators.table.jsonable import jsonable
    from ...operators.table.merge import merge
    from ...operators.table.schema import END, START, aggregates_of, keys_of
    from .stored import moment, read
    from .written import answer, cell, span

    found = read(table, moment(since), moment(until))
    if every is not None or by is not None:
        found = merge(found, by=by, every=every)
    rows = ask.query(found)
    if as_json:
        for row in rows.iter_rows(named=True):
            print(json.dumps(jsonable(row), ensure_ascii=False))
        return
    keys, aggregates = keys_of(found.schema), aggregates_of(found.schema)
    shown = Table(header_style="bold", box=box.SIMPLE_HEAD)
    shown.add_column("window (UTC)", no_wrap=True)
    for name in [*keys, *aggregates]:
        shown.add_column(name)
    for row in rows.iter_rows(named=True):
        cells = [span(row[START], row[END]), *(cell(row[key]) for key in keys)]
        cells += [answer(row[name]) for name in aggregates]
        shown.add_row(*map(Text, cells))
    Console().print(shown)

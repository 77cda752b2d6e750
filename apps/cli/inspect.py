"""`streamgauge inspect`: what is in a stored table of sketches."""

from __future__ import annotations

from ...operators.rendering.names import amount, visible_name
from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import write_json
from .query import AsJson, TablePath


def inspect(table: TablePath, as_json: AsJson = False) -> None:
    """Show what a stored table holds: its windows, keys and aggregates with their parameters and sizes.

    Tables describe themselves:
    merging and querying need nothing but the file's metadata.

        streamgauge inspect trades

        streamgauge inspect trades --json | jq .aggregates
    """

    import pyarrow as pa
    import pyarrow.compute as pc
    from rich import box
    from rich.table import Table

    from ...operators.rendering.answers import number, when
    from ...operators.table.schema import END, START, TIME_TYPE, aggregates_of, keys_of
    from ...operators.table.sketch_table import SketchTable
    from ...operators.table.stored import read

    content = read(table)
    timed = START in SketchTable(content).column_names
    starts, ends = (content[edge] if timed else pa.array([], TIME_TYPE) for edge in (START, END))
    first, last = pc.min(starts).as_py(), pc.max(ends).as_py()
    aggregates = [
        {**aggregate.definition(), "name": name, "bytes": content.column(name).nbytes}
        for name, aggregate in aggregates_of(content.schema).items()
    ]
    about = {
        "rows": content.num_rows,
        "windows": pc.count_distinct(starts).as_py(),
        "first": None if first is None else first.isoformat(),
        "last": None if last is None else last.isoformat(),
        "keys": keys_of(content.schema),
        "aggregates": aggregates,
    }
    if as_json:
        write_json(about)
        return
    console = TerminalConsole()
    span = f", from {when(first)} to {when(last)} UTC" if first is not None else ""
    windows = f" in {amount(about['windows'], 'window')}{span}" if timed else ", no windows"
    console.print(f"{amount(content.num_rows, 'row')}{windows}", highlight=False)
    console.print(
        "keys: " + (", ".join(map(visible_name, keys_of(content.schema))) or "none"), highlight=False
    )
    shown = Table(
        "column", "aggregate", "of", "parameters", "bytes", header_style="bold", box=box.SIMPLE_HEAD
    )
    shown.columns[4].justify = "right"
    for aggregate in aggregates:
        options = {**aggregate["params"], **aggregate["answer"]}
        written = ", ".join(f"{key} {value}" for key, value in options.items() if value is not None)
        shown.add_row(
            visible_name(aggregate["name"]),
            aggregate["aggregate"],
            visible_name(aggregate["column"]) if aggregate["column"] else "rows",
            written,
            number(aggregate["bytes"]),
        )
    console.print(shown)

"""What a stored table of sketches holds, from its files alone: windows, keys, and aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...operators.rendering.names import amount, visible_name
from ...operators.watching.console import TerminalConsole


def description(table: str) -> dict[str, Any]:
    """Describe a file, a folder or an s3:// URL: rows, windows, keys, aggregates with parameters and bytes.

    Raises `SketchError` for files that aren't a table of sketches, `FileNotFoundError` if there are none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from ...operators.table.schema import END, START, TIME_TYPE, aggregates_of, keys_of
    from ...operators.table.sketch_table import SketchTable
    from ...operators.table.stored import read

    content = read(table)
    timed = START in SketchTable(content).column_names
    starts, ends = (content[edge] if timed else pa.array([], TIME_TYPE) for edge in (START, END))
    first, last = pc.min(starts).as_py(), pc.max(ends).as_py()
    return {
        "rows": content.num_rows,
        "windows": pc.count_distinct(starts).as_py(),
        "first": None if first is None else first.isoformat(),
        "last": None if last is None else last.isoformat(),
        "keys": keys_of(content.schema),
        "aggregates": [
            {**aggregate.definition(), "name": name, "bytes": content.column(name).nbytes}
            for name, aggregate in aggregates_of(content.schema).items()
        ],
    }


def show_description(about: Mapping[str, Any]) -> None:
    """Print a description for people."""
    from datetime import datetime

    from rich import box
    from rich.table import Table

    from ...operators.rendering.answers import number, when

    console = TerminalConsole()
    windows = ", no windows"
    if about["first"] is not None:
        first, last = (datetime.fromisoformat(about[edge]) for edge in ("first", "last"))
        windows = f" in {amount(about['windows'], 'window')}, from {when(first)} to {when(last)} UTC"
    console.print(f"{amount(about['rows'], 'row')}{windows}", highlight=False)
    console.print("keys: " + (", ".join(map(visible_name, about["keys"])) or "none"), highlight=False)
    shown = Table(
        "column", "aggregate", "of", "parameters", "bytes", header_style="bold", box=box.SIMPLE_HEAD
    )
    shown.columns[4].justify = "right"
    for aggregate in about["aggregates"]:
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

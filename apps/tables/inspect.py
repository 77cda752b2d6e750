"""`streamgauge inspect`: what is in a stored table of sketches."""

from __future__ import annotations

from .query import AsJson, TablePath


def inspect(table: TablePath, as_json: AsJson = False) -> None:
    """Show what a stored table holds: its windows, keys and aggregates with their parameters and sizes.

    A table says itself what is in it: nothing else has to be known to merge and to ask it, by us or by who
    reads its metadata.

        streamgauge inspect trades

        streamgauge inspect trades --json | jq .aggregates
    """
    import json

    import pyarrow.compute as pc
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from ...operators.table.schema import END, START, aggregates_of, keys_of
    from ...operators.table.stored import read
    from .written import number, when

    found = read(table)
    starts, ends = found[START], found[END]
    first, last = pc.min(starts).as_py(), pc.max(ends).as_py()
    aggregates = [
        {**asked.definition(), "name": name, "bytes": found.column(name).nbytes}
        for name, asked in aggregates_of(found.schema).items()
    ]
    about = {
        "rows": found.num_rows,
        "windows": pc.count_distinct(starts).as_py(),
        "first": None if first is None else first.isoformat(),
        "last": None if last is None else last.isoformat(),
        "keys": keys_of(found.schema),
        "aggregates": aggregates,
    }
    if as_json:
        print(json.dumps(about, ensure_ascii=False))
        return
    console = Console()
    span = f", from {when(first)} to {when(last)} UTC" if first is not None else ""
    console.print(f"{number(found.num_rows)} rows in {about['windows']} windows{span}", highlight=False)
    console.print("keys: " + (", ".join(keys_of(found.schema)) or "none"), highlight=False)
    shown = Table(
        "column", "aggregate", "of", "parameters", "bytes", header_style="bold", box=box.SIMPLE_HEAD
    )
    shown.columns[4].justify = "right"
    for asked in aggregates:
        options = {**asked["params"], **asked["answer"]}
        written = ", ".join(f"{key} {value}" for key, value in options.items() if value is not None)
        shown.add_row(
            asked["name"], asked["aggregate"], asked["column"] or "rows", written, number(asked["bytes"])
        )
    console.print(shown)

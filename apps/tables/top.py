"""`streamgauge top`: the most frequent values over a stored table of sketches."""

from __future__ import annotations

from typing import Annotated

import typer

from .query import AsJson, Since, TablePath, Until


def top(
    table: TablePath,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which top_k column, if the table has several.")
    ] = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """The most frequent values of all windows, or of a span of them, with bounds of their counts.

    The true count of each value lies between its bounds, always; what is not listed has no more than the
    last one's upper bound.

        streamgauge top posts.parquet -k 20

        streamgauge top posts.parquet --column tags --from 2026-06-01T12:00 --to 2026-06-01T13:00
    """
    import json

    import numpy as np
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ...operators.table.schema import aggregates_of, keys_of
    from ...operators.table.windows import end_to_end
    from .stored import moment, read
    from .written import number, plain

    found = read(table, moment(since), moment(until))
    candidates = {name: asked for name, asked in aggregates_of(found.schema).items() if asked.name == "top_k"}
    if column is None and len(candidates) == 1:
        column = next(iter(candidates))
    if column not in candidates:
        has = ", ".join(candidates) or "none"
        raise ValueError(
            f"{table}: name one top_k column with --column; the table has {has}"
            if column is None
            else f"{table}: {column} is not a top_k column; the table has {has}"
        )
    found = end_to_end(found, keys_of(found.schema))
    groups = candidates[column].groups(1)
    groups.merge(np.zeros(found.num_rows, np.int64), found.column(column).combine_chunks())
    items = groups[0].top(k)
    if as_json:
        print(json.dumps([item._asdict() for item in items], ensure_ascii=False))
        return
    shown = Table("", column, "", "count", "at least", "at most", header_style="bold", box=box.SIMPLE_HEAD)
    for place in (0, 3, 4, 5):
        shown.columns[place].justify = "right"
    most = max((item.upper for item in items), default=1)
    for rank, item in enumerate(items, 1):
        bar = Text("█" * max(round(item.estimate / most * 30), 1), style="cyan")
        counts = (number(count) for count in (item.estimate, item.lower, item.upper))
        shown.add_row(str(rank), Text(plain(str(item.item))), bar, *counts)
    Console().print(shown)

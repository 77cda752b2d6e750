"""`streamgauge query`: questions about a table of sketches, on disk or behind a query server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...operators.watching.terminal import write_json, write_line

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
_Many = list[str] | None


def query(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A file of sketches, Parquet or Arrow IPC, a folder or s3:// URL of them, or "
            "http://HOST:PORT/tables/NAME of a server.",
        ),
    ],
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION",
            help="rows, distinct, top-k, quantiles, cdf, frequency, membership, sample or sets; or describe.",
        ),
    ] = "rows",
    column: Annotated[str, typer.Option(metavar="NAME", help="The column to query.")] = "",
    columns: Annotated[
        _Many, typer.Option(metavar="NAME", help="For rows: show only this column. Repeatable.")
    ] = None,
    since: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="Start of the windows, such as 2026-06-01T12:00 (UTC)."),
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="End of the windows.")] = "",
    last: Annotated[
        str, typer.Option(metavar="LENGTH", help="Length of the newest windows, such as 1h.")
    ] = "",
    every: Annotated[
        str,
        typer.Option(metavar="LENGTH", help='Merge into windows of this length, such as 1h, or "span".'),
    ] = "",
    zone: Annotated[
        str, typer.Option(metavar="NAME", help="Time zone of the windows; default: the table's, or UTC.")
    ] = "",
    window_offset: Annotated[
        str, typer.Option(metavar="LENGTH", help="Shift the windows, such as by 6h or -1h.")
    ] = "",
    by: Annotated[
        _Many,
        typer.Option(metavar="NAME", help='Keep this key; others are merged. Repeatable; "none" for none.'),
    ] = None,
    key: Annotated[
        _Many, typer.Option(metavar="KEY=VALUE", help="Select groups with this key value. Repeatable.")
    ] = None,
    null: Annotated[
        _Many, typer.Option(metavar="NAME", help="Also select groups without this key. Repeatable.")
    ] = None,
    closed: Annotated[bool, typer.Option("--closed", help="Leave out windows that are still open.")] = False,
    k: Annotated[
        int | None, typer.Option("-k", metavar="NUMBER", min=1, help="For top-k: number of items.")
    ] = None,
    q: Annotated[
        _Many, typer.Option("-q", metavar="RANK", help="For quantiles: a rank, such as 0.99. Repeatable.")
    ] = None,
    x: Annotated[_Many, typer.Option("-x", metavar="VALUE", help="For cdf: a value.")] = None,
    item: Annotated[
        _Many,
        typer.Option(
            metavar="ITEM",
            help="For frequency and membership: number, text or ISO time.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option("--as", metavar="KIND", help="Item type, if not recorded: text, whole or number."),
    ] = "",
    order: Annotated[
        str, typer.Option(metavar="NAME", help="Order rows by this column, biggest first as in -posts.")
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="NUMBER", min=1, help="Maximum number of rows.")
    ] = None,
    other: Annotated[str, typer.Option(metavar="NAME", help="For sets: the other set's column.")] = "",
    other_key: Annotated[
        _Many, typer.Option(metavar="KEY=VALUE", help="For sets: the other set's groups.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the server's token; else STREAMGAUGE_TOKEN."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Query a table of sketches; each answer has its bounds.

    A table is a folder that `SketchesToParquet` wrote, a file that `SketchTable.write` or `streamgauge sketch
    --output` wrote, or a table of `streamgauge serve`. Coarser windows and fewer keys are merged from the
    sketches, without further error. Without a question, one row is shown for each window and group;
    `describe` shows what a stored table holds: its windows, keys and aggregates with parameters and sizes.

        streamgauge query trades

        streamgauge query trades describe

        streamgauge query trades --every 1h --by symbol

        streamgauge query trades --every 1d --zone America/New_York

        streamgauge query trades top-k --column users -k 20 --last 1h

        streamgauge query trades quantiles -q 0.5 -q 0.999 --key symbol=ACME

        streamgauge query http://127.0.0.1:8055/tables/trades rows --every span --order=-trades --limit 10
    """
    import sys

    from ...queries.question.question import question as read
    from ..tables.description import description, show_description
    from ..tables.request import answered
    from ..tables.view import notes, print_json, show

    given: dict[str, Any] = {
        "column": [column],
        "columns": columns,
        "from": [since],
        "to": [until],
        "last": [last],
        "every": [every],
        "zone": [zone],
        "offset": [window_offset],
        "by": by,
        "null": null,
        "open": ["false" if closed else ""],
        "k": [k],
        "q": q,
        "x": x,
        "item": item,
        "as": [kind],
        "order": [order],
        "limit": [limit],
        "other": [other],
    }
    parameters: dict[str, list[Any]] = {
        name: values for name, values in given.items() if values and values[0] not in ("", None)
    }
    for prefix, pairs in (("key", key), ("other-key", other_key)):
        for pair in pairs or ():
            name, equals, value = pair.partition("=")
            if not equals:
                raise ValueError(f"--{prefix} {pair}: write it as --{prefix} lang=en")
            parameters.setdefault(f"{prefix}.{name}", []).append(value)
    if question == "describe":
        if parameters:
            raise ValueError(f"describe takes no options except --json, got {', '.join(parameters)}")
        if table.startswith(("http://", "https://")):
            raise ValueError("describe is for stored tables; a server describes its tables at /tables")
        about = description(table)
        if as_json:
            write_json(about)
        else:
            show_description(about)
        return
    read(question, parameters)  # what is wrong with the question alone is said before anything is read
    answer = answered(table, question, parameters, token_file)
    if as_json:
        print_json(answer)
    else:
        show(answer)
    for note in notes(answer):
        write_line(note, sys.stderr)

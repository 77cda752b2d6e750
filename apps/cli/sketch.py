"""`streamgauge sketch`: questions about files, without Kafka, Java or Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import write_json, write_line
from ..ending import at_once, in_order
from .query import AsJson

if TYPE_CHECKING:
    from ...operators.sketching.account import Account

_Columns = list[str] | None
TimeUnit = Literal["s", "ms", "us", "ns"]
_SHOWN = 50
_SAMPLED = 10


def sketch(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files, folders or patterns of Parquet, CSV, lines of JSON or Arrow IPC.",
        ),
    ],
    time: Annotated[
        str, typer.Option(metavar="NAME", help="Column with the event time; needed for windows.")
    ] = "",
    time_unit: Annotated[
        TimeUnit | None,
        typer.Option(metavar="s|ms|us|ns", help="Unit of times that are numbers since 1970."),
    ] = None,
    window: Annotated[str, typer.Option(metavar="LENGTH", help="Window length, such as 1m or 1h.")] = "",
    by: Annotated[_Columns, typer.Option(metavar="NAME", help="Group by this column. Repeatable.")] = None,
    distinct: Annotated[
        _Columns,
        typer.Option(
            metavar="NAME", help="Count distinct values of this column, except empty strings. Repeatable."
        ),
    ] = None,
    top_k: Annotated[
        _Columns,
        typer.Option("--top-k", metavar="NAME", help="Most frequent values of this column. Repeatable."),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="NUMBER", min=1, help="For --top-k: number of values.")
    ] = 10,
    quantiles: Annotated[
        _Columns, typer.Option(metavar="NAME", help="Quantiles of this column. Repeatable.")
    ] = None,
    sample: Annotated[
        _Columns, typer.Option(metavar="NAME", help="Ten random values of this column. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File for the sketches, .parquet or .arrow, for `query`."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            metavar="NUMBER",
            min=1,
            help=f"Maximum number of rows: {_SHOWN}, or all with --json.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count and sketch the rows of files; each estimate has its bounds.

    Files are read piece by piece on all cores and may be larger than memory. Sketches stored with `--output`
    can be merged with sketches of other files, of a topic or of Spark, and `streamgauge query` reads them.

        # how many users are there, and which tags are used most?
        streamgauge sketch posts.parquet --distinct user --top-k tag

        # latency by service and hour in a year of files
        streamgauge sketch "logs/2026/*/*.parquet" --time at --window 1h --by service --quantiles ms

        # store the sketches, then roll them up to days
        streamgauge sketch posts/ --time at --window 1h --distinct user --output posts-sketches.parquet
        streamgauge query posts-sketches.parquet --every 1d
    """
    with at_once():
        import polars as pl

        from ...operators.definition.aggregates import count
        from ...operators.definition.aggregates import distinct as distinct_
        from ...operators.definition.aggregates import quantiles as quantiles_
        from ...operators.definition.aggregates import sample as sample_
        from ...operators.definition.aggregates import top_k as top_k_
        from ...operators.definition.stream import Stream
        from ...operators.files.local_run import stream_of, table_over
        from ...operators.formats.jsonable import jsonable
        from ...operators.rendering.names import amount

    if window and not time:
        raise typer.BadParameter("windows need --time, the column that holds the time", param_hint="--window")
    aggregates: dict[str, Any] = {
        **{f"distinct_{name}": distinct_(name) for name in distinct or ()},
        **{f"top_{name}": top_k_(name, k=k) for name in top_k or ()},
        **{f"quantiles_{name}": quantiles_(name) for name in quantiles or ()},
        **{f"sample_{name}": sample_(name, k=_SAMPLED) for name in sample or ()},
    }
    at = pl.from_epoch(time, time_unit=time_unit) if time and time_unit else time or None
    with in_order(), _in_options(time):
        rows = stream_of(Stream, files, at)
        if by:
            rows = rows.group_by(*by)
        if window:
            rows = rows.tumbling(window)
        table = table_over(rows.agg(rows=count(), **aggregates), files, None, progress=True)
        _check_counted(table.account, time)
        if output is not None:
            table.write(output)
    answers = table.answers()
    shown = answers.head(limit or (answers.height if as_json else _SHOWN))
    if as_json:
        for row in shown.iter_rows(named=True):
            write_json(jsonable(row))
        return
    _show(shown.to_dicts(), max(k, _SAMPLED))
    left = answers.height - shown.height
    if left > 0:
        write_line(f"{amount(left, 'more row')}; --limit shows more, --output stores all")
    refused = table.account.dead_lettered
    said = f", {refused:,} of which can't be counted" if refused else ""
    kept = "" if output is None else f"; the sketches are in {output}"
    write_line(f"{amount(table.account.read, 'row')} read{said}{kept}")


@contextmanager
def _in_options(time: str) -> Iterator[None]:
    """Say what is wrong with columns in the words of the command line."""
    try:
        yield
    except TypeError as error:
        text = str(error)
        if text.startswith("time: ") and "doesn't say its unit" in text:
            text = f"the time {time!r} is a number: set its unit with --time-unit, such as ms"
        elif "cast it" in text:
            text += f". The command reads columns as they are; Python can do that: {_in_python(text)}"
        raise ValueError(text) from error


def _in_python(problem: str) -> str:
    """How to change the column that a problem names, or to choose another sketch for it, in Python."""
    column = problem.split("'")[1] if "'" in problem else "…"
    if "ask for kll_quantiles" in problem:
        return f'sg.Stream.from_frame(pl.scan_parquet(…)).agg({column}=sg.kll_quantiles("{column}"))'
    cast = f'with_columns(pl.col("{column}").cast(pl.String))'
    return f"sg.Stream.from_frame(pl.scan_parquet(…).{cast})"


def _check_counted(account: Account, time: str) -> None:
    """Raise `ValueError` if there were rows and none could be counted."""
    if account.read and account.dead_lettered == account.read:
        which = f"have no usable time in {time!r}" if time else "were refused"
        rows = f"{account.dead_lettered:,} of {account.read:,}"
        raise ValueError(f"no row could be counted: {rows} {which}")


def _show(rows: list[dict[str, Any]], items: int) -> None:
    from ..tables.window_rows import WindowRows

    console = TerminalConsole()
    if rows:
        console.print(WindowRows(rows, items))
    else:
        console.print("there are no rows")

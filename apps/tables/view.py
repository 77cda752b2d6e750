"""Show answers in a terminal, in a table that fits its width, with bars to compare numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...operators.rendering.names import amount, visible_name
from ...operators.watching.terminal import write_json

if TYPE_CHECKING:
    from rich.table import Table

    from ...queries.answers.answers import Answer

_BARS = {
    "top-k": "estimate",
    "distinct": "estimate",
    "frequency": "estimate",
    "cdf": "rank",
    "sets": "estimate",
}
"""The column of answers that is drawn as bars, by question; for quantiles, the value."""
_START, _END = "window_start", "window_end"
_WIDEST = 30


def print_json(answer: Answer) -> None:
    """Print each row as a JSON object on a line of its own."""
    from ...operators.formats.jsonable import jsonable

    for row in answer.rows.iter_rows(named=True):
        write_json(jsonable(row))


def notes(answer: Answer) -> Iterator[str]:
    """Return what a reader must know about an answer besides its numbers, one sentence each."""
    if answer.stale is not None:
        yield f"stale since {answer.stale['since']}: {answer.stale['why']}"
    for gap in answer.missing:
        if gap["from"] is None:  # it is unknown whether there were any
            yield f"windows before {gap['to']}, if there were any, are missing: {gap['why']}"
        else:
            yield f"windows from {gap['from']} to {gap['to']} are missing: {gap['why']}"


def show(answer: Answer) -> None:
    """Print an answer as a table."""
    from ...operators.watching.console import TerminalConsole
    from .window_rows import WindowRows

    console = TerminalConsole()
    if not answer.rows.height:
        console.print("no window has any rows of that", highlight=False)
        return
    if answer.question == "rows":
        console.print(WindowRows(answer.rows.to_dicts()))
    else:
        console.print(_long(answer, console.width))
    console.print(_standing(answer), highlight=False, style="dim")


def _standing(answer: Answer) -> str:
    from ...operators.rendering.answers import span

    state = "some still open" if answer.open else "final" if answer.final else "may still change"
    if answer.since is None or answer.until is None:
        return f"no windows, {state}"
    return f"{amount(answer.windows, 'window')}, {span(answer.since, answer.until)} UTC, {state}"


def _long(answer: Answer, width: int) -> Table:
    """One line per item, rank or group, with numbers right-aligned, and the window only if there are
    several."""
    from rich.text import Text

    from ...operators.rendering.answers import span

    frame = answer.rows
    several = _START in frame.columns and frame.select(_START, _END).unique().height > 1
    names = [name for name in frame.columns if name not in (_START, _END)]
    compared = "value" if answer.question == "quantiles" else _BARS.get(answer.question)
    bars = _bars(frame[compared], _width(answer, width, several)) if compared in names else None
    shown = _table(*(["window (UTC)"] if several else []), *(_titles(names)), *([""] if bars else []))
    for at, name in enumerate(names):
        if frame[name].dtype.is_numeric():
            shown.columns[at + several].justify = "right"
    for number, row in enumerate(frame.iter_rows(named=True)):
        cells = [span(row[_START], row[_END])] if several else []
        cells += [_value(name, row[name]) for name in names]
        drawn = [] if bars is None else [Text(bars[number], style="cyan")]
        shown.add_row(*map(Text, cells), *drawn)
    return shown


def _titles(names: list[str]) -> list[str]:
    titles = {"lower": "at least", "upper": "at most", "false_positives": "found wrongly", "rank": "rank"}
    return [titles.get(name) or visible_name(name) for name in names]


def _value(name: str, value: Any) -> str:
    from ...operators.rendering.answers import answer, cell, number

    if isinstance(value, list):
        return ", ".join(answer(one).replace("\n", ", ") for one in value)
    if name in ("q", "false_positives") and value is not None:
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return number(value)
    return cell(value) if isinstance(value, bytes | str) else answer(value)


def _bars(values: Any, width: int) -> list[str] | None:
    """Draw a bar for each value; None if bars can't compare them: below 0, not numbers, or not finite."""
    if not values.dtype.is_numeric() or width < 8:
        return None
    known = values.cast(float).fill_nan(None)
    if known.min() is None or known.min() < 0 or not 0 < known.max() < float("inf"):
        return None
    most = known.max()
    return [
        "█" * max(round(value / most * width), 1 if value else 0) if value is not None else ""
        for value in known
    ]


def _width(answer: Answer, width: int, several: bool) -> int:
    """Return the maximum width of bars, beside the other columns at their widest."""
    names = [name for name in answer.rows.columns if name not in (_START, _END)]
    fixed = 24 + 3 if several else 0
    for name, title in zip(names, _titles(names)):
        widest = max((len(_value(name, value)) for value in answer.rows[name].head(200)), default=0)
        fixed += max(widest, len(title)) + 3
    return min(_WIDEST, width - fixed - 4)


def _table(*titles: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(*titles, header_style="bold", box=box.SIMPLE_HEAD)

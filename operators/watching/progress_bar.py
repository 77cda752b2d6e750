"""A progress bar in a terminal for work of known size; nothing is shown elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(text: str, total: int, unit: str) -> Iterator[Callable[[], None]]:
    """Show a bar on stderr while the block runs; calling the yielded function advances it by one.

    >>> with progress_bar("verifying", 2, "files") as advance:
    ...     advance()
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .console import TerminalConsole
    from .progress_line import in_foreground

    console = TerminalConsole(stderr=True)
    if not console.is_terminal or not in_foreground():
        yield lambda: None
        return
    columns = (
        TextColumn(text, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(text, total=total)
        yield lambda: shown.advance(task)

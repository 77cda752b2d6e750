"""Show what a program is waiting for, so that the screen doesn't look frozen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text


@contextmanager
def stage(console: Console, doing: str, done: str = "") -> Iterator[None]:
    """Show `doing` and the elapsed seconds, animated; afterwards `done` stays, if anything.

    Without a terminal, `doing` is printed as one line.
    """
    if not console.is_terminal:
        console.print(f"{doing} …", highlight=False)
        yield
        return
    begin = time.monotonic()
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as moving:
        moving.add_task(doing, total=None)
        yield
    if done:
        seconds = f" ({time.monotonic() - begin:.0f} s)"
        console.print(Text.assemble(("✓ ", "green"), done, (seconds, "dim")))

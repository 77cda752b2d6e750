"""Compile kernels in several processes, with a line that moves."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ..operators.warm.processes import take
from ..operators.warm.steps import Step


def compile_all(steps: Sequence[Step], doing: str, jobs: int = 0, console: Console | None = None) -> None:
    """Take all steps, `jobs` at a time (0: one a core), and show on stderr how many are done.

    Where there is no terminal, `doing` is one line. Raises `WarmError` if a step fails.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        console.print(f"{doing} …", highlight=False)
        take(steps, jobs)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as moving:
        task = moving.add_task(doing, total=len(steps))
        take(steps, jobs, lambda step: moving.advance(task))

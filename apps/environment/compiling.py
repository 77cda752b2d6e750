"""Compile kernels in several processes, with a progress line."""

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

from ...operators.warm_up.processes import run_all
from ...operators.warm_up.steps import Step
from ...operators.watching.console import TerminalConsole


def compile_all(steps: Sequence[Step], doing: str, jobs: int = 0, console: Console | None = None) -> None:
    """Run all steps, `jobs` at a time (0: one per core), and show on stderr how many are done.

    Without a terminal, `doing` is printed as one line. Raises `WarmError` if a step fails.
    """
    console = console or TerminalConsole(stderr=True)
    if not console.is_terminal:
        console.print(f"{doing} …", highlight=False)
        run_all(steps, jobs)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as moving:
        task = moving.add_task(doing, total=len(steps))
        run_all(steps, jobs, lambda step: moving.advance(task))

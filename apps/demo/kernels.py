"""The kernels that a demo's apps run: loaded, or compiled side by side before it begins."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from ...operators.definition.stream import Stream
from ...operators.warm.steps import READING, steps
from ...sketches.core.kernel_cache import NotKept, only_kept
from ..compiling import compile_all
from ..stage import stage


def ready(streams: Iterable[Stream], console: Console) -> None:
    """Have the kernels of all families that streams ask for loaded, so that none waits for the compiler."""
    names = {one.name for stream in streams for one in stream.aggregates.values()}
    todo = steps([READING, *sorted(names)])
    with stage(console, "loading kernels"):
        try:
            with only_kept():
                for step in todo:
                    step.take()
                return
        except NotKept:
            pass
    compile_all(todo, "compiling the kernels that the demo needs (once)", console=console)

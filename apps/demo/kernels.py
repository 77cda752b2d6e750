"""The kernels of a demo's apps: loaded while its broker starts, or compiled before its engines start."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from rich.console import Console

from ...operators.definition.stream import Stream
from ...operators.warm_up.steps import READING, Step, steps
from ...sketches.core.compilation.kernel_cache import NotKept, only_kept
from ..environment.compiling import compile_all


class Kernels:
    """The kernels of all families that streams request, so that no engine waits for the compiler."""

    def __init__(self, todo: Sequence[Step]) -> None:
        self._todo = todo
        self._missing = False
        self._loading = threading.Thread(target=self._load, name="demo kernels", daemon=True)

    @classmethod
    def loading(cls, streams: Iterable[Stream]) -> Kernels:
        """Begin to load the streams' kernels, in a thread."""
        names = {one.name for stream in streams for one in stream.aggregates.values()}
        kernels = cls(steps([READING, *sorted(names)]))
        kernels._loading.start()
        return kernels

    def wait(self) -> None:
        """Wait until the kernels on disk are loaded."""
        self._loading.join()

    def compile_missing(self, console: Console) -> None:
        """If any kernels are not on disk, compile them in parallel and say so."""
        self.wait()
        if self._missing:
            compile_all(self._todo, "compiling the kernels that the demo needs (once)", console=console)

    def _load(self) -> None:
        try:
            with only_kept():
                for step in self._todo:
                    step.run()
        except NotKept:
            self._missing = True

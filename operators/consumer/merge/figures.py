"""The figures in the log's state: those of the whole group, whichever worker counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...definition.stream import Stream
from ...watching.figures import Figures, InputFigures
from ...watermarks.global_watermark import Mark
from ...watermarks.position import Input
from ...windows.window import EARLIEST
from ..log.merger_state import LogState


def figures_of(
    state: LogState,
    stream: Stream,
    group: str,
    inputs: Iterable[Input],
    waiting: Callable[[Input], int | None],
    now: float,
    held: Callable[[Input], tuple[int, float]] = lambda where: (0, 0.0),
) -> Figures:
    """A group's figures, from its merged log; `waiting` returns an input's lag, `now` is wall-clock time.

    `held` returns how many of an input's messages an open transaction holds back, and for how many seconds.
    """

    def one(where: Input) -> InputFigures:
        mark = state.marks.get(where, Mark())
        reached = _reached(mark.time.watermark(stream.delay_us))
        return InputFigures(waiting(where), reached, mark.idle, *held(where))

    return Figures(
        group=group,
        account=state.account,
        missed=state.missed,
        inputs={where: one(where) for where in inputs},
        watermark_us=_reached(state.closed_us),
        now=now,
    )


def _reached(time_us: int) -> int | None:
    return time_us if time_us > EARLIEST else None

"""The figures that the state of the log tells: those of the whole group, whoever counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...definition.stream import Stream
from ...definition.windows import EARLIEST
from ...sketching.closing import Mark
from ...sketching.position import Input
from ...watching.figures import Figures, InputFigures
from ..log.state import LogState


def figures_of(
    state: LogState,
    stream: Stream,
    group: str,
    inputs: Iterable[Input],
    waiting: Callable[[Input], int | None],
    now: float,
) -> Figures:
    """What was merged tells of a group; `waiting` gives an input's lag, `now` is the wall clock's time."""

    def one(where: Input) -> InputFigures:
        mark = state.marks.get(where, Mark())
        return InputFigures(waiting(where), _reached(mark.time.watermark(stream.delay_us)), mark.idle)

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

"""Whether a run does its work, and whether it has begun to."""

from __future__ import annotations

from dataclasses import dataclass

from .figures import Figures

STALLED_SECONDS = 60.0
"""A run whose messages have waited for so long, with none counted, is not healthy."""


@dataclass(frozen=True, slots=True)
class Health:
    """`healthy` unless the run failed or stands still though messages wait; `ready` once it works.

    Ready means that every input partition has a worker, in this process or another of the group, and that
    this process's merger has read the log of deltas to its end. `why` says what is missing, if anything is.
    """

    healthy: bool
    ready: bool
    why: str = ""


def health_of(figures: Figures, checkpoint_seconds: float = 1.0) -> Health:
    """The health that a run's figures speak of.

    A run with long checkpoints may stand still for three of them.

    >>> health_of(Figures(group="g", owned=True))
    Health(healthy=True, ready=False, why='the log of deltas is being read')
    >>> health_of(Figures(group="g", state="failed", why="no such topic"))
    Health(healthy=False, ready=False, why='the run failed: no such topic')
    """
    if figures.state == "failed":
        return Health(False, False, f"the run failed: {figures.why}")
    if figures.state == "ended":
        return Health(True, False, "the run has ended")
    if figures.stalled_seconds > max(STALLED_SECONDS, 3 * checkpoint_seconds):
        waiting = "messages wait" if figures.lag is None else f"{figures.lag:,} messages wait"
        return Health(False, False, f"{waiting}, and none was counted in {figures.stalled_seconds:.0f} s")
    if not figures.owned:
        return Health(True, False, "some input partitions have no worker yet")
    if not figures.caught_up:
        return Health(True, False, "the log of deltas is being read")
    return Health(True, True)

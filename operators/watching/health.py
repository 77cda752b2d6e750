"""Whether a run does its work, and whether it has started to."""

from __future__ import annotations

from dataclasses import dataclass

from .figures import Figures

STALLED_SECONDS = 60.0
"""A run is unhealthy if its messages have waited this long with none counted."""


@dataclass(frozen=True, slots=True)
class Health:
    """`healthy` unless the run failed or is stuck although messages wait; `ready` once it works.

    Ready means that every input partition has a worker, in this process or another of the group, and that
    this process's merger has read the log of deltas to its end. `why` says what is missing or needs
    attention, if anything does.
    """

    healthy: bool
    ready: bool
    why: str = ""


def health_of(figures: Figures, checkpoint_seconds: float = 1.0) -> Health:
    """The health that follows from a run's figures.

    With long checkpoints, a run may make no progress for the length of three.

    >>> health_of(Figures(group="g", owned=True))
    Health(healthy=True, ready=False, why='the log of deltas is being read')
    >>> from .figures import InputFigures
    >>> open_long = {("posts", 0): InputFigures(lag=7, held_back=7, held_seconds=90.0)}
    >>> print(health_of(Figures(group="g", owned=True, caught_up=True, inputs=open_long)).why)
    a transaction on posts[0], open for 90 s, holds back 7 messages; streamgauge kafka groups show g ...
    >>> health_of(Figures(group="g", state="failed", why="no such topic"))
    Health(healthy=False, ready=False, why='the run failed: no such topic')
    """
    if figures.state == "failed":
        return Health(False, False, f"the run failed: {figures.why}")
    if figures.state == "ended":
        return Health(True, False, "the run has ended")
    if figures.state == "stopping":
        return Health(True, False, "the run is stopping")
    if figures.stalled_seconds > max(STALLED_SECONDS, 3 * checkpoint_seconds):
        waiting = "messages wait" if figures.lag is None else f"{figures.lag:,} messages wait"
        why = f"{waiting}, and none was counted in {figures.stalled_seconds:.0f} s"
        return Health(False, False, f"{why}: {held}" if (held := _held_back(figures)) else why)
    if not figures.owned:
        return Health(True, False, "some input partitions have no worker yet")
    if not figures.caught_up:
        return Health(True, False, "the log of deltas is being read")
    return Health(True, True, _held_back(figures))


def _held_back(figures: Figures) -> str:
    """A description of a transaction that has been open so long that it may hang; empty if there is none."""
    for (topic, partition), own in sorted(figures.inputs.items()):
        if own.held_seconds > STALLED_SECONDS:
            return (
                f"a transaction on {topic}[{partition}], open for {own.held_seconds:.0f} s, holds back "
                f"{own.held_back:,} messages; streamgauge kafka groups show {figures.group} says how to end "
                "it"
            )
    return ""

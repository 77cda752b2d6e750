"""A running stream: its workers, its merger, and the results so far."""

from __future__ import annotations

from ..table.sketch_table import SketchTable
from ..watching.figures import Figures
from ..watching.health import Health
from .run_plan import Plan, Plans
from .summary import Summary
from .supervision.exposed_metrics import ExposedMetrics
from .supervision.supervisor import Supervisor


class Run(Supervisor):
    """A running stream: `summary` reports its state, `stop` and `wait` end it.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> value, broker = sg.json(schema), "localhost:9092"
    >>> posts = sg.Stream.from_kafka("posts", value=value, time="at", bootstrap_servers=broker)
    >>> run = posts.group_by("lang").tumbling("1m").agg(posts=sg.count()).start(until="latest")
    >>> summary = run.wait()
    >>> summary.account.counted, run.table().answers()["posts"].sum(), run.running
    (4, 4, False)
    """

    def __init__(self, plan: Plan, exposed: ExposedMetrics) -> None:
        self.plan = plan
        super().__init__(Plans.of([plan]), exposed)
        self._only = self._results[plan.name]

    def __repr__(self) -> str:
        account, state = self._only.account, self._state()[0]
        dead = f", {account.dead_lettered:,} of them dead-lettered" if account.dead_lettered else ""
        return (
            f"Run({self.plan.topic!r} in the group {self.plan.group_id!r}, {state}: "
            f"{account.read:,} messages read{dead})"
        )

    def figures(self) -> Figures:
        """The current figures: the numbers that metrics, health and the progress line show.

        It asks no broker: the lag is from the last answer, at most a few seconds old.
        """
        return self._only.figures()

    def health(self) -> Health:
        """Whether the run is `healthy` and `ready`; `why` gives the reason if not.

        It is unhealthy once it has failed, or if messages have waited for a minute with none counted. It is
        ready once every input partition has a worker and its log was read to the end.
        """
        return self._only.health()

    def drain(self, seconds: float | None = None) -> Summary:
        """Stop reading, deliver everything, close every window that may close, and wait for all of this.

        `stop` does the same but gives the merger only a few seconds for the rest of the log. With `drain`,
        the merger merges all of it, however long that takes, sinks get every closed window, and the position
        is stored. Windows that may still get rows stay open for the next run of the group. If another process
        merges, this does not cover its windows.

        Raises what `wait` raises, and `TimeoutError` after `seconds`, while draining continues.
        """
        self._drained()
        return self.wait(seconds)

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> Summary:
        """Wait for the end; an unbounded run ends only by `stop` or an error.

        Raises the error that ended it, and `TimeoutError` after `seconds`, while the run continues.
        """
        self._ended(seconds)
        return self.summary(interrupted)

    def summary(self, interrupted: bool = False) -> Summary:
        """The result so far."""
        return self._only.summary(interrupted)

    def table(self) -> SketchTable:
        """The table of sketches of all windows so far, both closed and open ones."""
        return self._only.table()

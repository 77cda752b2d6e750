"""A running stream: its workers, its merger, and what came of them so far."""

from __future__ import annotations

from ..table.sketch_table import SketchTable
from ..watching.figures import Figures
from ..watching.health import Health
from .plan import Plan, Plans
from .summary import Summary
from .supervision.supervisor import Supervisor


class Run(Supervisor):
    """A running stream: see how it does with `summary`, end it with `stop` and `wait`.

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

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        super().__init__(Plans.of([plan]))
        self._only = self._results[plan.name]

    def __repr__(self) -> str:
        account, state = self._only.account, self._state()[0]
        dead = f", {account.dead_lettered:,} of them dead-lettered" if account.dead_lettered else ""
        return (
            f"Run({self.plan.topic!r} in the group {self.plan.group_id!r}, {state}: "
            f"{account.read:,} messages read{dead})"
        )

    def figures(self) -> Figures:
        """What is known of it at this moment: the numbers that metrics, health and the progress line show.

        Costs no question to a broker: what waits is what the last answer said, at most some seconds ago.
        """
        return self._only.figures()

    def health(self) -> Health:
        """Whether it does its work (`healthy`), and has begun to (`ready`); `why` not, in words.

        It is not healthy once it has failed, or if messages have waited for a minute with none counted. It is
        ready once every input partition has a worker and its log was read to the end.
        """
        return self._only.health()

    def drain(self, seconds: float | None = None) -> Summary:
        """Read no more, deliver what was read, close every window that may close, and wait for all that.

        `stop` does the same but gives the merger only some seconds for what lies in the log. Here it takes
        all of it in, however long that takes, sinks have every closed window, and the place is kept. Windows
        that may still get rows stay open for the next run of the group. Where another process merges, its
        windows are its own affair.

        Raises what `wait` raises; after `seconds` it is a `TimeoutError`, and the draining goes on.
        """
        self._drained()
        return self.wait(seconds)

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> Summary:
        """Wait for the end; an unbounded run ends only by `stop` or an error.

        Raises the error that ended it, and `TimeoutError` after `seconds`, while the run goes on.
        """
        self._ended(seconds)
        return self.summary(interrupted)

    def summary(self, interrupted: bool = False) -> Summary:
        """The result so far."""
        return self._only.summary(interrupted)

    def table(self) -> SketchTable:
        """The table of sketches of all windows so far, both closed and open ones."""
        return self._only.table()

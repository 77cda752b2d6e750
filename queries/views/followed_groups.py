"""The current tables of running groups, for a query or a program."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ...operators.table.sketch_table import SketchTable
from .kept_windows import with_kept
from .live import LiveTable
from .table_follower import TableFollower
from .view import NotReady, TableView, rows_of

log = logging.getLogger("streamgauge.serving")

_KEEP_US = 3650 * 86_400_000_000
_SECONDS = 60.0
_MISSING_SECONDS = 10.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class FollowedGroups:
    """The table topics of running groups, each followed from the first query to `close`."""

    settings: Mapping[str, Any]
    _followed: dict[str, TableFollower] = field(default_factory=dict)

    def view(self, group: str) -> TableView:
        """A group's current table, open windows included.

        Raises `NotReady` after a minute without one, or after ten seconds without its table topic.
        """
        if group not in self._followed:
            self._followed[group] = TableFollower(group, self.settings, LiveTable(group, _KEEP_US))
        follower = self._followed[group]
        table = follower.table
        # A later query must see what arrived since the previous one.
        begun, since = time.time(), time.monotonic()
        while True:
            try:
                view = table.view()
                if view.ready and view.lag == 0 and view.stale is None and follower.heard >= begun:
                    return view
                why = view.stale.why if view.stale is not None else "its table topic is being read"
            except NotReady as error:
                why = str(error)
            seconds = _SECONDS if follower.has_topic else _MISSING_SECONDS
            if time.monotonic() - since > seconds:
                raise NotReady(f"the table of {group} could not be read in {seconds:.0f} s: {why}")
            time.sleep(0.05)

    def close(self) -> None:
        """Stop following all of them."""
        for follower in self._followed.values():
            follower.close()
        self._followed.clear()


def read_group(
    group_id: str,
    table: str | Path | None = None,
    bootstrap_servers: str = "localhost:9092",
    config: Mapping[str, Any] | None = None,
) -> SketchTable:
    """Read the table of a running group as it is now, open windows included.

    The group's table topic has open windows, and closed ones until it is trimmed. `table` is the folder or
    URL in which the run stores closed windows (``run(table=…)``). Open and closed windows are then one table,
    in which each window counts once. A warning in the log names windows that are in neither. `config` are
    librdkafka's settings.

    On Spark, ``sg.spark.as_frame(sg.read_group(…), spark)`` returns it as a DataFrame.

    Raises `NotReady` if the table can't be read within a minute, or its table topic isn't found within ten
    seconds, and `SketchError` for a folder of another definition.

    >>> import streamgauge as sg
    >>> sg.read_group("by-minute", table="s3://bucket/minutes").answers()  # doctest: +SKIP
    """
    groups = FollowedGroups({"bootstrap.servers": bootstrap_servers, **(config or {})})
    try:
        view = groups.view(group_id)
        view = view if table is None else with_kept(view, str(table))
    finally:
        groups.close()
    for gap in view.gaps:
        until = _EPOCH + timedelta(microseconds=gap.until)
        log.warning("windows of %s that end by %s are not in the table: %s", group_id, until, gap.why)
    return SketchTable(rows_of(view.windows) if view.windows else view.schema.empty_table())

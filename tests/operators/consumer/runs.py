"""What tests of whole runs share: the windows of a run, a topic read to its end, a broker killed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.summary import Summary
from streamgauge.operators.table.sketch_table import merge

from ...waiting import until

DELIVERIES = ["exactly_once", "at_least_once"]


class Windows:
    """Closed windows by their start; one that comes again replaces what was known of it."""

    def __init__(self) -> None:
        self.tables: dict[object, pa.Table] = {}

    def __call__(self, table: pa.Table) -> None:
        self.tables[table.column("window_start")[0].as_py()] = table

    def table(self) -> pa.Table:
        return merge(self.tables.values())


def run_and_ask(stream: Any, options: RunOptions) -> Summary:
    """The summary of a run to its end, with its lag: that is unknown as long as no broker answers."""
    running = start(stream, options)
    running.wait(600)
    until(lambda: running.summary().lag is not None)
    return running.summary()

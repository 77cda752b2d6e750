"""What tests of whole runs share: the windows of a run, a topic read to its end, a broker killed."""

from __future__ import annotations

import pyarrow as pa

from streamgauge.operators.table.merge import merge

DELIVERIES = ["exactly_once", "at_least_once"]


class Windows:
    """Closed windows by their start; one that comes again replaces what was known of it."""

    def __init__(self) -> None:
        self.tables: dict[object, pa.Table] = {}

    def __call__(self, table: pa.Table) -> None:
        self.tables[table.column("window_start")[0].as_py()] = table

    def table(self) -> pa.Table:
        return merge(self.tables.values())

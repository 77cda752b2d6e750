"""In parallel: which worker runs which file, and in what order.

Starting a Spark session costs a worker many seconds, starting a broker a few. So two workers begin with the
files that need Spark, each with its own half. The others begin with those that start programs of their own,
which take longest, and those that need a broker. A worker that has finished its own files helps with the
rest, file by file, so that all end at about the same time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.report import report_collection_diff
from xdist.scheduler import LoadScopeScheduling

_SESSION = re.compile(r"def \w+\([^)]*\bspark\b|getfixturevalue\(\"spark\"\)|usefixtures\(\"spark\"\)")
"""What uses the session of the whole run, rather than a Spark of its own, or none unless it is a campaign."""
_REST = ["law", "pure"]
LANES = (
    ["Spark", "Spark too", "apart", "Kafka too", "Kafka", *_REST],
    ["Spark too", "Spark", "apart", "Kafka", "Kafka too", *_REST],
    ["apart", "Kafka", "Kafka too", *_REST, "Spark too", "Spark"],
)
"""Kinds of files in the order in which a worker takes them: the first worker, the second, and all others."""


@cache
def kind_of(path: Path) -> str:
    """What the tests of a file need."""
    text = path.read_text()
    if "mark.apart" in text:
        return "apart"
    if "mark.spark" in text and _SESSION.search(text):
        return "Spark" if "spark_udafs" in path.parts else "Spark too"
    if "mark.kafka" in text:
        return "Kafka" if "consumer" in path.parts else "Kafka too"
    if "mark.spark" in text:
        return "apart"
    return "law" if "laws" in path.parts else "pure"


class ByNeed(LoadScopeScheduling):
    """Units of work are files, those of laws single tests; each worker takes the kinds of its lane first.

    A worker that crashes loses nothing but the test that it ran: another takes over the rest of its files,
    and a replacement gets work only once it has collected the same tests.
    """

    _refused = False

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        kind = kind_of(self.config.rootpath / file)
        return f"{kind}: {file}" + (f"::{test.partition('[')[0]}" if kind == "law" else "")

    def _assign_work_unit(self, node: Any) -> None:
        number = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_unit(number, [*self.workqueue]), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        """Give a worker its next unit, unless it is a replacement that is still collecting."""
        if node in self.registered_collections:
            super()._reschedule(node)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take a worker's tests; a replacement that has collected others is reported and ended."""
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            assert self.collection is not None
            first = next(iter(self.registered_collections)).gateway.id
            diff = report_collection_diff(self.collection, collection, first, node.gateway.id)
            self._refuse(node, f"the replacement of a crashed worker gets no tests. {diff}")
            node.shutdown()

    def remove_node(self, node: Any) -> str | None:
        """Give back what a worker had left; returns the test that it ran if it crashed.

        Xdist would let each of the other workers crash in the same test.
        """
        left = self.assigned_work.pop(node)
        pending = [nodeid for unit in left.values() for nodeid, done in unit.items() if not done]
        if pending:
            left[self._split_scope(pending[0])][pending[0]] = True  # it has failed
            self.workqueue.update({scope: unit for scope, unit in left.items() if not all(unit.values())})
        if self._refused and self.workqueue and not self.assigned_work and not pending:
            self._refuse(node, f"no worker is left to run {', '.join(self.workqueue)}")
            self.workqueue.clear()
        return pending[0] if pending else None

    def mark_test_pending(self, item: str) -> None:
        """Run a test once more, whose worker crashed."""
        self.workqueue.setdefault(self._split_scope(item), {})[item] = False

    def _refuse(self, node: Any, reason: str) -> None:
        self._refused = True
        report = pytest.CollectReport(node.gateway.id, "failed", longrepr=reason, result=[])
        self.config.hook.pytest_collectreport(report=report)


def next_unit(worker: int, units: list[str]) -> str:
    """The unit that a worker, by its number, takes next."""
    lane = LANES[min(worker, len(LANES) - 1)]
    return min(units, key=lambda unit: lane.index(unit.split(":")[0]))

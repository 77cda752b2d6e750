"""In parallel: which worker runs which file, and in what order.

Starting a Spark session costs a worker many seconds, starting a broker a few. So two workers begin with the
files that need Spark, each with its own half. The others begin with those that start programs of their own,
which take longest, and those that need a broker. A worker that has finished its own files helps with the
rest, file by file, so that all end at about the same time.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

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
    """Units of work are files, those of laws single tests; each worker takes the kinds of its lane first."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        kind = kind_of(self.config.rootpath / file)
        return f"{kind}: {file}" + (f"::{test.partition('[')[0]}" if kind == "law" else "")

    def _assign_work_unit(self, node: Any) -> None:
        number = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_unit(number, [*self.workqueue]), last=False)
        super()._assign_work_unit(node)


def next_unit(worker: int, units: list[str]) -> str:
    """The unit that a worker, by its number, takes next."""
    lane = LANES[min(worker, len(LANES) - 1)]
    return min(units, key=lambda unit: lane.index(unit.split(":")[0]))

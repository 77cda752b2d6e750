"""Spark's Python workers, which can be struck; the product has none of this.

This is the daemon that Spark starts where ``spark.python.daemon.module`` names it. A worker that comes to one
of `POINTS` takes away the file that is named after it, if there is one, and dies.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

POINTS = ("rows half sketched", "buckets half merged", "samples not yet packed")
STRIKES = "STREAMGAUGE_STRIKES"
"""The environment's name for the folder of the files."""


def watch() -> None:
    """Strike this worker at the points."""
    from streamgauge.operators.sketching.panes import Panes
    from streamgauge.sampling.reservoir.groups import ReservoirGroups
    from streamgauge.spark_udafs.merge.buckets import WindowMerge

    _at(Panes, "add", "rows half sketched", before=1)
    _at(WindowMerge, "fold", "buckets half merged", before=1)
    _at(ReservoirGroups, "merge_columns", "samples not yet packed", before=0)


def _at(owner: Any, method: str, point: str, before: int) -> None:
    """Die where a method is called, after so many calls `before`."""
    whole, passed = getattr(owner, method), 0

    def struck(*args: Any, **more: Any) -> Any:
        nonlocal passed
        passed += 1
        if passed > before:
            try:
                Path(os.environ[STRIKES], point).unlink()
            except FileNotFoundError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return whole(*args, **more)

    setattr(owner, method, struck)


def main() -> None:
    """Spark's own daemon; its forks watch themselves."""
    from pyspark import daemon

    work = daemon.worker

    def watched(*given: Any) -> Any:
        watch()
        return work(*given)

    daemon.worker = watched
    daemon.manager()


if __name__ == "__main__":
    main()

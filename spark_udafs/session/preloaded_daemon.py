"""Spark's Python daemon with what our tasks run loaded: each worker that it forks begins at once.

Spark forks its Python workers from a daemon, one for each kind of work, and each of them would load the same
modules again: a second of a core, dozens of times at the start of a few queries. `session` names this module
in place of ``pyspark.daemon``: workers of its sessions have this package. Polars is not loaded
here, whose threads don't survive a fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

from pyspark.daemon import manager

_LOOKS_UP_ONLY = "pyspark.sql.worker.lookup_data_sources"
_TASKS = "pyspark.worker"
_SOURCE, _MERGE = "streamgauge.spark_udafs.kafka.source", "streamgauge.spark_udafs.merge.buckets"


def main(kind: str) -> None:
    """Load what workers of a kind run, and fork them until Spark ends it."""
    if kind != _LOOKS_UP_ONLY:
        for module in (kind, _SOURCE, *([_MERGE] if kind == _TASKS else ())):
            importlib.import_module(module)
        gc.freeze()
        import numpy

        os.register_at_fork(after_in_child=numpy.random.seed)  # or users' functions would draw alike in all
    manager()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else _TASKS)

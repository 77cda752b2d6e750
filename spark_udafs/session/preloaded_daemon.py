"""Spark's Python daemon with our modules preloaded, so that forked workers start immediately.

Spark forks its Python workers from a daemon for each kind of work, and each worker would load the same
modules again: a second of CPU time, dozens of times at the start of a few queries. `session` configures this
module in place of ``pyspark.daemon``, because workers of its sessions have this package. It doesn't load
Polars, whose threads don't survive a fork.
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
    """Load the modules for workers of this kind, and fork workers until Spark ends the daemon."""
    if kind != _LOOKS_UP_ONLY:
        for module in (kind, _SOURCE, *([_MERGE] if kind == _TASKS else ())):
            importlib.import_module(module)
        gc.freeze()
        import numpy

        os.register_at_fork(after_in_child=numpy.random.seed)  # or all workers would draw the same numbers
    manager()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else _TASKS)

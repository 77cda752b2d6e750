"""Fill the cache of the kernels that read Kafka: ``python -m streamgauge.operators.kafka.warm``.

Run once by the set-up, so that a stream's first batch doesn't wait for the compiler. No broker is needed.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

from ..formats.json import json
from ..formats.messages import Messages
from . import records


def main() -> None:
    """Call every kernel once, with the types of real batches."""
    print("compiling kernels once: reading Kafka", file=sys.stderr)
    messages = Messages.of([b'{"user": "ann", "tags": ["a"]}', None], keys=[b"k", None])
    json({"user": pl.String, "tags": pl.List(pl.String)}).decode(messages)
    messages.select(np.array([True, False])).value.validate()
    records.columns([])
    nothing = np.empty(0, np.int64)
    records.split_headers(np.empty(0, np.uint8), *[nothing] * 6)


if __name__ == "__main__":
    main()

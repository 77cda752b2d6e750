"""The kernels that read Kafka, called once; no broker is needed."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..formats.json import json
from ..formats.messages import Messages
from . import records


def read_batches() -> None:
    """Call every kernel once, with the types of real batches."""
    messages = Messages.of([b'{"user": "ann", "tags": ["a"]}', None], keys=[b"k", None])
    json({"user": pl.String, "tags": pl.List(pl.String)}).decode(messages)
    messages.select(np.array([True, False])).value.validate()
    records.columns([])
    nothing = np.empty(0, np.int64)
    records.split_headers(np.empty(0, np.uint8), *[nothing] * 6)

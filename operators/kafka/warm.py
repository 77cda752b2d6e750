"""Warming up the kernels that read Kafka; needs no broker."""

from __future__ import annotations

import numpy as np

from ...sketches.core.lazy import pl
from ..formats.byte_copy import copy_spans
from ..formats.json.decoder import json
from ..formats.json.rows import parse
from ..formats.json.values import STATE_WORDS
from ..formats.messages import Messages
from . import record_kernel


def read_batches() -> None:
    """Call every kernel once, with the types of real batches."""
    from google.protobuf.wrappers_pb2 import Int64Value

    from ..formats.avro.decoder import avro  # loads Polars
    from ..formats.protobuf.decoder import protobuf

    messages = Messages.of([b'{"user": "ann", "tags": ["a"]}', None], keys=[b"k", None])
    json({"user": pl.String, "tags": pl.List(pl.String)}).decode(messages)
    flat = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    avro(flat).decode(Messages.of([b"\2"]))
    protobuf(Int64Value).decode(Messages.of([b"\x08\2"]))
    messages.select(np.array([True, False])).value.validate()
    split_batches()


def split_batches() -> None:
    """Call the kernels that don't need Polars: splitting batches and reading JSON; loads shared modules."""
    record_kernel.columns([])
    nothing, no_bytes = np.empty(0, np.int64), np.empty(0, np.uint8)
    record_kernel.split_headers(no_bytes, *[nothing] * 6)
    copy_spans(no_bytes, nothing, nothing, no_bytes, nothing)
    state, refused = np.zeros(STATE_WORDS, np.int64), np.empty((0, 4), np.int64)
    parse(nothing, nothing, np.empty(0, bool), 1, 0, 0, state.ctypes.data, nothing, refused)

"""After the set-up's warming no kernel on the way from Kafka to columns is compiled again."""

from __future__ import annotations

import numpy as np

from streamgauge.operators.formats import json_rows, spans
from streamgauge.operators.kafka import records, warm


def test_every_kernel_that_reads_kafka_is_compiled() -> None:
    warm.read_batches()
    kernels = [records.split, records.split_headers, spans.copy_spans, json_rows.parse]
    assert [kernel.py_func.__name__ for kernel in kernels if not kernel.signatures] == []


def test_a_batch_needs_no_further_compilation() -> None:
    warm.read_batches()
    before = {kernel: len(kernel.signatures) for kernel in (spans.copy_spans, json_rows.parse)}
    from streamgauge.operators.formats.json import json
    from streamgauge.operators.formats.messages import Messages

    messages = Messages.of([b"{}"] * 3).select(np.array([0, 2]))
    assert json({}).decode(messages).frame.height == 2
    assert {kernel: len(kernel.signatures) for kernel in before} == {
        spans.copy_spans: before[spans.copy_spans],
        json_rows.parse: before[json_rows.parse],
    }

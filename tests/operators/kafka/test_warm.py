"""After the set-up's warming no kernel on the way from Kafka to columns is compiled again."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from streamgauge.operators.formats import byte_copy
from streamgauge.operators.formats.avro import scan as avro_scan
from streamgauge.operators.formats.json import rows as json_rows
from streamgauge.operators.formats.protobuf import scan as protobuf_scan
from streamgauge.operators.kafka import record_kernel, warm


def test_every_kernel_that_reads_kafka_is_compiled() -> None:
    warm.read_batches()
    kernels = [record_kernel.split, record_kernel.split_headers, byte_copy.copy_spans, json_rows.parse]
    kernels += [avro_scan.scan, protobuf_scan.scan]
    assert [kernel.py_func.__name__ for kernel in kernels if not kernel.signatures] == []


def test_a_batch_needs_no_further_compilation() -> None:
    warm.read_batches()
    before = {kernel: len(kernel.signatures) for kernel in (byte_copy.copy_spans, json_rows.parse)}
    from streamgauge.operators.formats.json.decoder import json
    from streamgauge.operators.formats.messages import Messages

    messages = Messages.of([b"{}"] * 3).select(np.array([0, 2]))
    assert json({}).decode(messages).frame.height == 2
    assert {kernel: len(kernel.signatures) for kernel in before} == {
        byte_copy.copy_spans: before[byte_copy.copy_spans],
        json_rows.parse: before[json_rows.parse],
    }


ALONE = """
import sys
from streamgauge.operators.kafka import warm
warm.split_batches()
assert "polars" not in sys.modules
from streamgauge.operators.formats.json import decoder as json, rows as json_rows
from streamgauge.operators.formats import messages
assert len(json_rows.parse.signatures) == 1
json.json({}).decode(messages.Messages.of([b"{}"]))
assert len(json_rows.parse.signatures) == 1, json_rows.parse.signatures
"""


@pytest.mark.slow
def test_without_polars_the_json_kernel_is_called_with_the_types_of_real_batches() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=600)

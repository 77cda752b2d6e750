"""A stream of a source of ours is refused where Spark can't tell it where a query goes on."""

from __future__ import annotations

import pytest

from streamgauge.spark_udafs import read_limits


def test_a_stream_is_refused_with_the_version_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    read_limits.need_limits("Kafka messages")
    monkeypatch.setattr(read_limits, "ReadLimit", type("ReadLimit", (), {"__module__": read_limits.__name__}))
    monkeypatch.setattr(read_limits.pyspark, "__version__", "4.1.4")
    with pytest.raises(
        read_limits.SparkTooOldError,
        match=r"a stream of Kafka messages needs PySpark 4.2 or newer, and this is 4.1.4: .* Batches work",
    ):
        read_limits.need_limits("Kafka messages")

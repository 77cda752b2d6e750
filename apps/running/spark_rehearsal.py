"""Record the classes that Spark loads for streams (`spark_classes`), by having it count a message.

``python -m streamgauge.apps.running.spark_rehearsal`` does that on a broker of its own, in a JVM with the
options that it is given.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from ...operators.definition.aggregates import count
from ...operators.definition.stream import Stream
from ...operators.formats.text.plain import raw
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.subprocess_module import environment
from ...operators.table.sketch_table import SketchTable
from ...sketches.core.errors import StreamgaugeError
from ..dev.kafka.broker import EmbeddedKafka
from ..environment.java import find_java
from .spark import start_session
from .spark_classes import spark_archive

_MODULE = "streamgauge.apps.running.spark_rehearsal"
_END_SECONDS = 300.0
_LAST_LINES = 5


class RehearsalError(StreamgaugeError, RuntimeError):
    """What Spark loads could not be recorded; the message ends with what the rehearsal said last."""


def record() -> None:
    """Record the classes, unless that was done: half a minute, and 180 MB in the user's cache folder.

    Raises `JavaError`, `CacheError` and `RehearsalError`.
    """
    spark_archive(find_java()).make(_rehearse)


def _rehearse(java_options: Sequence[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", _MODULE, *java_options],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-_LAST_LINES:])
        raise RehearsalError(f"what Spark loads could not be recorded; the rehearsal ended with:\n{said}")


def main(java_options: Sequence[str]) -> None:
    """Count it, and return once the JVM has ended."""
    from pyspark import SparkContext

    from ...spark_udafs.streaming.together import write_together

    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        ensure_topic(admin(servers), "rehearsal", 1)
        producer = Producer(servers)
        producer.produce("rehearsal", b"{}")
        producer.flush()

        session = start_session(Path(folder), java_options)
        messages = Stream.from_kafka("rehearsal", value=raw(), bootstrap_servers=kafka.bootstrap_servers)
        streams = {every: messages.tumbling(every).agg(messages=count()) for every in ("1m", "1h")}
        query = write_together(
            streams,
            session,
            Path(folder) / "checkpoint",
            {name: [_Unseen()] for name in streams},
            available_now=True,
            emit="both",
        )
        query.awaitTermination()
        gateway: Any = SparkContext._gateway
        session.stop()
        with suppress(OSError):
            gateway.proc.stdin.close()
        gateway.proc.wait(_END_SECONDS)


class _Unseen:
    """A sink for which Spark gives out windows that fill, too."""

    provisional = True

    def __call__(self, table: SketchTable, batch: object) -> None:
        """Take windows in."""


if __name__ == "__main__":
    main(sys.argv[1:])

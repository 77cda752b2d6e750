"""A topic into Parquet files by Quix Streams' file sink, run by the interpreter of its own environment.

Usage: ``python quix_file_sink.py BOOTSTRAP TOPIC MESSAGES FOLDER``; prints messages per second of CPU time.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid

from quixstreams import Application
from quixstreams.sinks.community.file.formats.parquet import ParquetFormat
from quixstreams.sinks.community.file.local import LocalFileSink


def main(bootstrap: str, topic: str, messages: int, folder: str) -> None:
    application = Application(
        broker_address=bootstrap,
        consumer_group=uuid.uuid4().hex,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        commit_interval=5.0,
        loglevel="ERROR",
    )
    sink = LocalFileSink(directory=folder, format=ParquetFormat(compression="zstd"))
    source = application.topic(topic, value_deserializer="string")
    application.dataframe(source).apply(lambda text: {"value": text}).sink(sink)
    begun = time.process_time()
    application.run(count=messages, timeout=120)
    print(messages / (time.process_time() - begun))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])

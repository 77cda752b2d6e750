"""The same three sketches as a Quix Streams application, run by the interpreter of its own environment.

Usage: ``python quix_streams.py BOOTSTRAP TOPIC MESSAGES``; prints messages a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid

import datasketches
from quixstreams import Application


def main(bootstrap: str, topic: str, messages: int) -> None:
    users = datasketches.hll_sketch(12, datasketches.HLL_8)
    prices = datasketches.kll_doubles_sketch(200)
    tags = datasketches.frequent_strings_sketch(10)
    started: list[float] = []

    def sketch(row: dict) -> None:
        if not started:
            started.append(time.perf_counter())
        users.update(row["user"])
        prices.update(row["price"])
        tags.update(row["tag"])

    application = Application(
        broker_address=bootstrap,
        consumer_group=uuid.uuid4().hex,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        loglevel="ERROR",
    )
    application.dataframe(application.topic(topic, value_deserializer="json")).update(sketch)
    application.run(count=messages, timeout=120)
    print(messages / (time.perf_counter() - started[0]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""Two topics joined by key within an interval, as a Quix Streams application.

Usage: ``python quix_interval_join.py BOOTSTRAP ADS CLICKS PAIRS WITHIN_MS``; prints pairs a second after the
first one.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid

from quixstreams import Application


def main(bootstrap: str, ads: str, clicks: str, pairs: int, within_ms: int) -> None:
    result = list[float]()

    def take(row: dict) -> None:
        result.append(time.perf_counter())

    application = Application(
        broker_address=bootstrap,
        consumer_group=uuid.uuid4().hex,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        loglevel="ERROR",
    )
    left = application.dataframe(application.topic(ads, value_deserializer="json"))
    right = application.dataframe(application.topic(clicks, value_deserializer="json"))
    interval = {"grace_ms": within_ms, "backward_ms": within_ms, "forward_ms": within_ms}
    left.join_interval(right, how="inner", on_merge="keep-left", **interval).update(take)
    application.run(count=pairs, timeout=600)
    assert len(result) == pairs, len(result)
    print(pairs / (time.perf_counter() - result[0]))


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))

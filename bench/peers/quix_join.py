"""A topic joined with a table of the latest message a key, as a Quix Streams application.

Usage: ``python quix_join.py BOOTSTRAP POSTS USERS MESSAGES``; prints the seconds until the table was
read, and joined messages a second after that.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections import Counter

from quixstreams import Application


def main(bootstrap: str, posts: str, users: str, messages: int) -> None:
    countries: Counter[str] = Counter()
    began, started = time.perf_counter(), []

    def take(row: dict) -> None:
        if not started:
            started.append(time.perf_counter())
        countries[row["country"]] += 1

    application = Application(
        broker_address=bootstrap,
        consumer_group=uuid.uuid4().hex,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        loglevel="ERROR",
    )
    left = application.dataframe(application.topic(posts, value_deserializer="json"))
    right = application.dataframe(application.topic(users, value_deserializer="json"))
    left.join_asof(right, how="inner", on_merge="keep-left").update(take)
    application.run(count=messages, timeout=600)
    ended = time.perf_counter()
    assert sum(countries.values()) == messages, sum(countries.values())
    print(started[0] - began, messages / (ended - started[0]))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))

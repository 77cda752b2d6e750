"""Groups whose table can't be read: what is wrong is said within seconds."""

from __future__ import annotations

import time
from typing import Any

import pytest

from streamgauge.queries.views.followed_groups import read_group
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.table_follower import TableFollower
from streamgauge.queries.views.view import NotReady

from ...waiting import until


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    table = LiveTable("by-minute")
    follower = TableFollower("by-minute", {"bootstrap.servers": "127.0.0.1:1"}, table)
    try:
        until(lambda: caplog.messages, 15)
        with pytest.raises(NotReady, match=r"^no broker answered at 127\.0\.0\.1:1 within 5 s: .*address"):
            table.view()
    finally:
        follower.close()
    assert caplog.messages[0].startswith(
        "the table by-minute can't be read: no broker answered at 127.0.0.1:1 within 5 s"
    )


@pytest.mark.slow
@pytest.mark.kafka
def test_a_group_without_a_table_topic_is_given_up_soon(kafka: Any, caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with pytest.raises(NotReady) as error:
        read_group("nosuch", bootstrap_servers=kafka.bootstrap_servers)
    assert time.monotonic() - began < 20
    missing = f"there is no table topic nosuch.table.* at {kafka.bootstrap_servers}; "
    assert str(error.value).startswith(f"the table of nosuch could not be read in 10 s: {missing}")
    [warning] = caplog.messages
    assert warning.startswith(f"the table nosuch can't be read: {missing}")
    assert warning.endswith("; trying again")

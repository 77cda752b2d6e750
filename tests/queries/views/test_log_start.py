"""Where a server begins to read a table topic, where a transaction hides what mergers wrote there."""

from __future__ import annotations

import pytest

from streamgauge.queries.views.log_start import LogStart, find_start
from streamgauge.queries.views.view import NotReady

from ...operators.consumer.merge.logs import Log
from ...waiting import until

pytestmark = pytest.mark.kafka


def test_a_state_behind_an_open_transaction_is_waited_for(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(3))
    still = log.stand_still()
    log.merge(2, drains=False)  # and deletes what is behind the open window
    assert log.begin > 0

    def find() -> LogStart:
        return find_start(log.client, log.plan.config, log.plan.group_id)

    with pytest.raises(NotReady, match="still open, and a merger's state may lie behind it"):
        find()
    still.abort_transaction(120)

    def is_there() -> bool:
        try:
            place = find().places[0]
        except NotReady:
            return False
        return place is not None and place[0] == log.begin

    until(is_there)

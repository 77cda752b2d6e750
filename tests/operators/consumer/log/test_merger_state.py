"""A merger's state as it is written down: damaged ones are refused, those without epochs are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamgauge.operators.consumer.log.merger_state import EmittedWindows, read_state, state_json
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.position import Input

from ..merge.deltas import STREAM, log, posts


def test_a_damaged_state_is_refused() -> None:
    for reported in ("", "{}", "[]", '{"chains": {"a": [1, 2, 3]}}'):
        with pytest.raises(DeltaError, match="damaged"):
            Merger(STREAM, posts(3)).restore(0, reported)


def test_a_state_goes_back_with_its_log_and_is_read_with_and_without_epochs() -> None:
    merger, (first, *_) = Merger(STREAM, posts(1)), log(1, 500, 1)
    assert merger.offer(replace(first, leader_epoch=3), 0)
    back = replace(
        first, first_offset=500, next_offset=420, table=None, messages={}, account=Account(truncated=80)
    )
    assert merger.offer(replace(back, leader_epoch=4), 1)
    offset, state = merger.restore_point()
    assert offset == 0  # its windows are open, and come again whole
    again = Merger(STREAM, posts(1))
    again.restore(offset, state)
    assert again.offer(replace(first, leader_epoch=3), 0) and again.offer(replace(back, leader_epoch=4), 1)
    assert not again.offer(replace(first, first_offset=300, next_offset=420), 2)
    where = Input("posts", 0)
    for one in (merger, again):
        assert one.state.marks[where].position.offset == 420
        assert one.state.marks[where].position.leader_epoch == 4
        assert one.state.account == first.account + Account(truncated=80)
        assert one.state.account.balanced
    written = json.loads(state_json(merger.state, EmittedWindows()))
    assert read_state(json.dumps(written))[0].marks[where].position.leader_epoch == 4
    del written["leaders"], written["account"]["truncated"]
    older, _ = read_state(json.dumps(written))
    assert older.marks[where].position.leader_epoch == -1
    assert older.account == first.account

"""A merger's state as it is written down: damaged ones are refused, older ones read."""

from __future__ import annotations

from json import dumps, loads

import pytest

from streamgauge.operators.consumer.log.faults import DeltaError
from streamgauge.operators.consumer.merge.merger import Merger

from ..merge.deltas import STREAM, log, merged, posts


def test_a_damaged_state_is_refused() -> None:
    for told in ("", "{}", "[]", '{"chains": {"a": [1, 2, 3]}}'):
        with pytest.raises(DeltaError, match="damaged"):
            Merger(STREAM, posts(3)).resume(0, told)


def test_a_state_from_before_windows_were_kept_holds_all_that_had_closed_as_final() -> None:
    deltas, before = log(6, 100), merged(log(6, 100))
    told = [table.column("window_start")[0].as_py() for table in before.close()]
    offset, state = before.resume_point()
    older = {name: value for name, value in loads(state).items() if name not in ("due", "kept")}
    after = Merger(STREAM, posts(3))
    after.resume(offset, dumps(older))
    assert after.state.due_us == after.state.closed_us
    for at in range(offset, len(deltas)):
        after.offer(deltas[at], at)
    assert told and after.close() == [] and after.state == before.state

"""A regular expression decides which messages go on; the others are counted."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.agents.ingest.batch import Batch
from streamgauge.agents.ingest.interceptors.filter import Filter

VALUES = [b"ERROR one", b"info", b"", b"\xff ERROR", b"an ERROR far behind the beginning"]


@pytest.mark.parametrize("exclude", [False, True])
def test_what_matches_stays_or_goes(exclude: bool) -> None:
    keys = [b"%d" % at for at in range(5)]
    batch = Batch.of(VALUES, keys=keys, timestamp_ms=np.arange(5))
    result = Filter(regex="ERROR", exclude=exclude).open(None).apply(batch)
    rows = [row for row, value in enumerate(VALUES) if (b"ERROR" in value) != exclude]
    assert result.values() == [VALUES[row] for row in rows]
    assert result.keys == [keys[row] for row in rows] and result.timestamp_ms.tolist() == rows
    assert result.dropped == {"filter": 5 - len(rows)} and result.read == 5


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"regex must be a regular expression, got '\('"):
        Filter(regex="(")

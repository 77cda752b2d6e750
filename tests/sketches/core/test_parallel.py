"""Slices of rows in threads: all rows once, in order, and nothing lost of what goes wrong."""

from __future__ import annotations

import threading

import pytest

from streamgauge.sketches.core import parallel
from streamgauge.sketches.core.parallel import each_slice


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 99])
def test_slices_make_up_all_rows_in_order(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    slices = each_slice(rows, lambda low, high: list(range(low, high)), least=5)
    assert [row for part in slices for row in part] == list(range(rows))
    assert len(slices) == max(1, min(3, rows // 5)), "one a core, none of fewer rows than pay"


def test_slices_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    met = threading.Barrier(3)
    assert len(each_slice(3, lambda low, high: met.wait(60), least=1)) == 3


@pytest.mark.parametrize("wrong", [0, 1])
def test_what_a_slice_raises_is_raised(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    ended = []

    def call(low: int, high: int) -> None:
        if low == wrong:
            raise LookupError("wrong")
        ended.append(low)

    with pytest.raises(LookupError, match="wrong"):
        each_slice(2, call, least=1)
    assert ended == [1 - wrong]

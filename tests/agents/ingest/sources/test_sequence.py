"""Numbers that count up."""

from __future__ import annotations

import pytest

from streamgauge.agents.ingest.sources.sequence import Sequence


def test_numbers_go_on_behind_the_last_position() -> None:
    source = Sequence(total=5, batch=2).open(None, {})
    batches = [source.read(0), source.read(0)]
    assert [batch.values() for batch in batches] == [[b"0", b"1"], [b"2", b"3"]] and not source.ended
    again = Sequence(total=5, batch=2).open(None, batches[-1].positions)
    assert again.read(0).values() == [b"4"] and again.ended and again.read(0) is None


def test_without_a_total_there_is_no_end() -> None:
    source = Sequence(batch=3).open(None, {})
    assert len(source.read(0)) == 3 and not source.ended and not source.finite


@pytest.mark.parametrize("name", ["total", "batch"])
def test_wrong_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer ≥ ., got -1"):
        Sequence(**{name: -1})

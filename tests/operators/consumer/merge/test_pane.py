"""What was spilled of a window is made whole a share of its groups at a time, in the order of its keys."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge import on_disk, pane
from streamgauge.operators.consumer.merge.pane import PanePart
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import schema_of

from .recomputed import SOURCE

KEYED = {"no key": SOURCE, "one key": SOURCE.group_by("key"), "two keys": SOURCE.group_by("key", "n")}


def deltas(stream: Stream, groups: int, seed: int) -> list[pa.Table]:
    """Tables of one window, some of their groups in several of them; a null and an empty text are keys."""
    random = np.random.default_rng(seed)
    progress, collected = PartitionState(stream, "input", 0, 0, clock=lambda: 0.0), []
    names = [None, "", *(f"key {number}" for number in range(groups))]
    for _ in range(6):
        keys = [names[at] for at in random.integers(0, len(names), groups)]
        rows = {"at": [0] * groups, "key": keys, "n": random.integers(0, 3, groups)}
        low = progress.next_offset
        progress.add(
            pl.DataFrame(rows, schema=SOURCE.source.schema),
            None,
            np.arange(low, low + groups),
            low + groups,
            lambda numbers, reason: None,
        )
        table = progress.delta().table
        assert table is not None
        collected.append(table)
    return collected


@pytest.mark.slow
@pytest.mark.parametrize("keys", KEYED)
@pytest.mark.parametrize("each", [500, 10_000_000])
def test_what_was_spilled_is_whole_and_in_order_whatever_the_shares(
    keys: str, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane, "_SHARE_BYTES", each)
    monkeypatch.setattr(on_disk, "_BATCH_BYTES", each // 3)
    stream = KEYED[keys].tumbling("1h").agg(rows=count(), different=distinct("n"))
    held, spilled = PanePart(schema_of(stream)), PanePart(schema_of(stream))
    for at, table in enumerate(deltas(stream, 300, 7)):
        held.merge(table)
        spilled.merge(table)
        if at % 2:
            spilled.spill()
            assert spilled.nbytes < held.nbytes
    assert spilled.table().combine_chunks().equals(held.table())
    assert spilled.table().combine_chunks().equals(held.table())  # asking changes nothing
    assert len(spilled) > 0


def test_a_share_is_all_that_is_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism by which a window of a million groups closes in less memory than its parts take."""
    monkeypatch.setattr(pane, "_SHARE_BYTES", 4_000)
    monkeypatch.setattr(on_disk, "_BATCH_BYTES", 1_000)
    stream = KEYED["one key"].tumbling("1h").agg(rows=count(), different=distinct("n"))
    part, parts = PanePart(schema_of(stream)), 0
    for table in deltas(stream, 2_000, 3):
        part.merge(table)
        part.spill()
        parts += table.nbytes
    read: list[int] = []
    whole = on_disk.TableFile.read

    def noted(self: on_disk.TableFile, low: int, high: int) -> pa.Table:
        read.append((high - low) * self.nbytes // self.rows)
        return whole(self, low, high)

    monkeypatch.setattr(on_disk.TableFile, "read", noted)
    part.table()
    assert sum(read) == pytest.approx(parts, rel=0.1)
    assert max(read) < 4_000 < parts / 20

"""Tables in temporary files: read as they were, in any stretch, and gone when nobody uses them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge import on_disk
from streamgauge.operators.consumer.merge.on_disk import TableFile


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_any_stretch_of_a_stored_table_is_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_disk, "_BATCH_BYTES", 100)
    halves = [
        {"a": range(low, low + 20), "b": [None, *(f"b{n}" for n in range(low, low + 19))]} for low in (0, 20)
    ]
    table = pa.concat_tables([pa.table(half) for half in halves])
    stored = TableFile(table)
    assert list(tmp_path.iterdir()) == []
    for low in range(41):
        for high in range(low, 41):
            assert (
                stored.read(low, high).combine_chunks().equals(table.slice(low, high - low).combine_chunks())
            )
    assert stored.columns(["b"]).column("b").to_pylist() == table.column("b").to_pylist()


def test_a_disk_without_room_is_named_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")
    with pytest.raises(OSError, match="TMPDIR; the next run of the group resumes without loss"):
        TableFile(pa.table({"a": [1]}))

"""Lines of any files as messages: unchanged, in order, due by their own times."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamgauge.apps.recordings.batch import Batch
from streamgauge.apps.recordings.compressed_files import RecordingError
from streamgauge.apps.recordings.lines import Lines, time_in

START = 1_767_225_600


def whole(source: Lines) -> tuple[list[bytes], list[float], list[int], Any, np.ndarray]:
    batches: list[Batch] = list(source.batches())
    values = [value for batch in batches for value in batch.values.to_pylist()]
    due = [at for batch in batches for at in batch.due.tolist()]
    sent = [at for batch in batches for at in batch.sent.tolist()]
    named = None
    if batches[0].named is not None:
        named = [key for batch in batches for key in batch.named or ()]
    return values, due, sent, named, np.concatenate([batch.keys for batch in batches])


def test_lines_are_due_by_their_times_and_go_unchanged(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"
    rows = [
        {"c": {"at": "2026-01-01T00:00:00Z"}, "k": "a"},
        {"c": {"at": (START + 30) * 1_000}, "k": 7},
        {"c": {}, "k": None},
        {"c": {"at": START + 20}},
    ]
    text = "\n".join([json.dumps(row) for row in rows[:3]] + ["", "not JSON"])
    one.write_text(f"{text}\r\n")
    two.write_bytes(gzip.compress(json.dumps(rows[3]).encode()))
    values, due, sent, named, keys = whole(Lines([one, two], "c.at", "k", speed=10.0))
    assert values == [
        *(json.dumps(row).encode() for row in rows[:3]),
        b"not JSON",
        json.dumps(rows[3]).encode(),
    ]
    assert due == [0.0, 3.0, 3.0, 3.0, 3.0]
    assert sent == [START * 1_000, *[(START + 30) * 1_000] * 4]
    assert named == [b"a", b"7", None, None, None] and keys[2] == keys[3] == keys[4] != keys[0]
    at_once = whole(Lines([one], "c.at", speed=0.0))
    assert set(at_once[1]) == {0.0} and at_once[3] is None and len(set(at_once[4].tolist())) == 4


def test_many_lines_come_in_parts_that_are_one_stream(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"ts": {START + n}, "n": {n}}}\n' for n in range(25_000)))
    assert time_in(file) == "ts"
    source = Lines([file], "ts")
    assert len(list(source.batches())) == 3
    values, due, _, _, keys = whole(source)
    assert [json.loads(value)["n"] for value in values] == list(range(25_000))
    assert due == list(range(25_000)) and keys.tolist() == list(range(25_000))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"n": 1, "created_at": "2026-01-01"}\n{"created_at": "2026-01-02"}', "created_at"),
        ('{"time": "soon", "at": 1767225600}', "at"),
        ('{"at": 1767225600}\n{"n": 1}', None),
        ("plain text", None),
        ("", None),
    ],
)
def test_the_field_of_the_time_is_found_in_the_first_lines(
    tmp_path: Path, text: str, field: str | None
) -> None:
    (tmp_path / "file").write_text(text)
    assert time_in(tmp_path / "file") == field


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert time_in(Path("-")) is None
    assert whole(Lines([Path("-")], speed=0.0))[0] == [b"a", b"b"]


def test_a_file_that_breaks_off_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"line\n" * 10_000)[:-20])
    with pytest.raises(RecordingError, match=r"cut\.gz can't be read to its end"):
        whole(Lines([tmp_path / "cut.gz"], speed=0.0))

"""An app gives of an archive what it gives of the recording that was archived, whose format it finds out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.operators.archive.segment import SegmentWriter
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.formats.messages import Messages

_START_MS = 1_767_225_600_000


@pytest.mark.slow
@pytest.mark.kafka
def test_an_archive_is_a_recording(kafka: Any, tmp_path: Path) -> None:
    values, times = [], []
    for minute in range(200):
        ms = _START_MS + 60_000 * minute
        reading = {"sensor": f"s{minute % 3}", "time": ms, "value": 20 + minute % 40}
        values.append(json.dumps(reading).encode() if minute != 50 else b"{broken")
        times.append(ms)
    file, archive = tmp_path / "readings.jsonl", tmp_path / "archive"
    file.write_bytes(b"\n".join(values) + b"\n")
    for first in (0, 120):
        writer = SegmentWriter("readings", 0, first)
        last = 120 if first == 0 else 200
        more: dict[str, Any] = {"topic": "readings", "first_offset": first}
        writer.add(Messages.of(values[first:last], timestamps=times[first:last], **more))
        segment, data = writer.finish()
        assert LocalStore(archive).create(segment.path, data)
    results = []
    for path in (file, archive):
        job = Job.of(app_of("iot"), None, {"limit": "50", "unit": "ms"}, None, path)
        request = AppReplay(job, [path])
        results.append(replayed(request, kafka.bootstrap_servers, Console(file=io.StringIO())))
    of_file, of_archive = results
    assert of_archive["alerts"] and of_archive["account"]["counted"] == 199
    for part in ("format", "account", "alerts", "answers", "all_inside_bounds"):
        assert of_archive[part] == of_file[part]

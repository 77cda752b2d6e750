"""Mastodon's statuses as posts of a replay."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.apps.replay.recorded import Recording

from ..trending.formats.test_mastodon import BOOST, STATUS


def test_the_replay_makes_posts_of_them(tmp_path: Path) -> None:
    path = tmp_path / "statuses.json"
    path.write_text(json.dumps([STATUS, BOOST]))
    (batch,) = Recording.open(path, speed=0).batches()
    first, second = (json.loads(value) for value in batch.values.to_pylist())
    assert (first["author"], first["tags"], first["lang"]) == ("ann@x.y", ["Rain"], "de")
    assert (second["author"], second["tags"], second["created_at"]) == (
        "bob",
        ["Rain"],
        "2026-06-01T12:00:00.123Z",
    )

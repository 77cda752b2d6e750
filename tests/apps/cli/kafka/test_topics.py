"""`streamgauge kafka topics` by itself: what topics are, and what completes in a shell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from streamgauge.apps.topics.known import kind_of, not_there


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("posts", ""),
        ("by-minute.table.24c2684216deea71", "table of by-minute"),
        ("by-minute.windows.24c2684216deea71", "closed windows of by-minute"),
        ("by-minute.table.other", ""),
        ("posts.late-messages", "late messages of posts"),
        ("__consumer_offsets", "Kafka's own"),
    ],
)
def test_topics_are_known_by_their_names(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_a_near_name_is_named() -> None:
    assert "did you mean 'posts'?" in not_there("post", ["posts", "trades"])
    assert "`streamgauge kafka topics`" in not_there("xyz", ["posts"])


def test_shells_complete_commands() -> None:
    code = "from streamgauge.apps.cli.commands import app; app(prog_name='streamgauge')"
    requested = {
        "_STREAMGAUGE_COMPLETE": "complete_bash",
        "COMP_WORDS": "streamgauge kafka t",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **requested},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["topics", "tail"]

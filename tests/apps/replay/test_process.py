"""A replay in a process of its own: how far it is, why it failed, and that it can be stopped."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.apps.replay.generated import Generated
from streamgauge.apps.replay.load import Load
from streamgauge.apps.replay.process import Replay, ReplayError

from .sent import read

pytestmark = pytest.mark.kafka


def test_a_replay_runs_in_its_own_process_and_tells_how_far_it_is(kafka: Any) -> None:
    kafka.create_topic("sender-process", 1)
    replay = Replay(
        Generated(Load(rate=5_000, seed=5), posts=2_000),
        "sender-process",
        kafka.bootstrap_servers,
        pace=False,
    ).start()
    replay.wait()
    assert replay.done and replay.sent == 2_000
    assert len(read(kafka.bootstrap_servers, "sender-process", 1)[0]) == 2_000


def test_a_replay_that_fails_says_why(kafka: Any) -> None:
    replay = Replay(Generated(Load(), posts=1), "sender-missing", kafka.bootstrap_servers).start()
    with pytest.raises(ReplayError, match="Unknown topic"):
        replay.wait()


def test_a_replay_can_be_stopped_at_any_moment(kafka: Any) -> None:
    kafka.create_topic("sender-stopped", 1)
    replay = Replay(Generated(Load(rate=100)), "sender-stopped", kafka.bootstrap_servers)
    replay.stop()  # never started
    replay.start()
    replay.stop()
    replay.stop()
    assert not replay.running

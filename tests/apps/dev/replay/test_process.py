"""A replay in a process of its own: how far it is, why it failed, and that it can be stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.dev.replay.generated import Generated
from streamgauge.apps.dev.replay.load import Load
from streamgauge.apps.dev.replay.process import Replay, ReplayError

from .sent import read

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_replay_runs_in_its_own_process_and_reports_how_far_it_is(kafka: Any) -> None:
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


INTERRUPTED = """
import multiprocessing, os, signal, sys, time
from streamgauge.apps.dev.replay.generated import Generated
from streamgauge.apps.dev.replay.load import Load
from streamgauge.apps.dev.replay.process import Replay

if __name__ == "__main__":
    replay = Replay(Generated(Load(rate=200)), "sender-interrupted", sys.argv[1]).start()
    sender, = multiprocessing.active_children()
    os.kill(sender.pid, signal.SIGINT)
    while replay.running and not replay.sent:
        time.sleep(0.02)
    os.kill(sender.pid, signal.SIGINT)
    before = replay.sent
    while replay.running and replay.sent < before + 50:
        time.sleep(0.02)
    print("sends on" if replay.running else "ended")
    replay.stop()
"""


@pytest.mark.slow
def test_an_interrupt_of_the_terminal_is_left_to_the_parent(kafka: Any, tmp_path: Path) -> None:
    kafka.create_topic("sender-interrupted", 1)
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED)
    # In an interpreter of its own, as the first child that one has brings multiprocessing's tracker with it.
    command = [sys.executable, str(program), kafka.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.stdout.split("\n")[0], done.stderr) == ("sends on", "")

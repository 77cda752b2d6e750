"""Steps in other processes: each once, a failure named, nothing left running."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from streamgauge.operators.warm_up.processes import WarmError, run_all
from streamgauge.operators.warm_up.steps import Step

SLEEP = """
import os, pathlib, time
pathlib.Path({0!r} + ".part").write_text(str(os.getpid()))
os.rename({0!r} + ".part", {0!r})  # there at once and whole
time.sleep(3600)
"""
FAIL = "import pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)\nraise ValueError('no')"


def test_each_step_is_taken_once(tmp_path: Path) -> None:
    steps = [Step(f"step {n}", Path(tmp_path, str(n)).mkdir) for n in range(3)]
    collected: list[str] = []
    run_all(steps, 2, lambda step: collected.append(step.name))
    assert sorted(collected) == ["step 0", "step 1", "step 2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
    run_all([])


@pytest.mark.slow
def test_a_failure_ends_the_others_and_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sleeper = str(tmp_path / "sleeper")
    steps = [Step("sleep", exec, (SLEEP.format(sleeper),)), Step("fail", exec, (FAIL.format(sleeper),))]
    with pytest.raises(WarmError, match="compiling fail failed, exit status 1"):
        run_all(steps, 2)
    assert "ValueError: no" in capfd.readouterr().err
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path(sleeper).read_text()), 0)


def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"

    def interrupt(step: Step) -> None:
        while not sleeper.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([Step("sleep", exec, (SLEEP.format(str(sleeper)),)), Step("one", int)], 2, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(sleeper.read_text()), 0)

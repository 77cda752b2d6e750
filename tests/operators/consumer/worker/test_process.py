"""A worker as a process of its own: what it prints and what it fails with, however much."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.consumer.worker.process import WorkerProcess
from streamgauge.operators.watching.logs import about

from ....waiting import until


class Doing:
    """A plan that does something as soon as the process has it."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (self._code,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "length"),
    [("print('x' * 300_000); raise ValueError('done')", 4), ("raise ValueError('y' * 300_000)", 300_000)],
    ids=["prints", "fails with a long error"],
)
def test_more_than_a_pipe_holds(code: str, length: int, capfd: pytest.CaptureFixture[str]) -> None:
    process = WorkerProcess(Doing(code))
    process.join(120)
    error = process.error()
    assert isinstance(error, ValueError) and len(str(error)) == length
    printed = capfd.readouterr()
    assert printed.out == "" and ("x" * 300_000 in printed.err) == (length == 4)


@pytest.mark.slow
def test_what_is_defined_in_the_users_own_script_reaches_a_worker() -> None:
    """Which no other process can import: callbacks of Kafka's client, decoders."""
    script = """
from streamgauge.operators.consumer.worker.process import WorkerProcess

class Decoder:
    def __reduce__(self):
        return fail, ("decoded",)

def fail(why):
    raise ValueError(why)

if __name__ == "__main__":
    process = WorkerProcess([Decoder(), lambda error: None])
    process.join(120)
    print(repr(process.error()))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert ended.stdout == "ValueError('decoded')\n", ended.stderr


def test_what_a_worker_logs_is_logged_by_the_run(caplog: pytest.LogCaptureFixture) -> None:
    said = "import logging; logging.getLogger('streamgauge.kafka').warning('a %s', 'flood')"
    with about(group="g"):
        process = WorkerProcess(Doing(f"{said}; raise SystemExit(0)"))
        process.join(120)
        process.error()
    [record] = [record for record in caplog.records if record.getMessage() == "a flood"]
    assert record.group == "g" and record.process != os.getpid()


def test_a_process_that_is_well_has_no_error() -> None:
    process = WorkerProcess(Doing("raise SystemExit(0)"))
    process.join(120)
    assert process.ended and process.exit_text == "exit status 1" and isinstance(process.error(), SystemExit)


def test_a_worker_that_fails_while_its_run_goes_on_says_why() -> None:
    process = WorkerProcess(Doing("pass"))  # None, which can't be worked on
    process.join(120)
    assert process.exit_text == "exit status 1"
    assert isinstance(process.error(), AttributeError)


NO_WORKER = "import streamgauge.operators.consumer.worker.worker as its; its.Worker = lambda *_: None"
"""Fails as it begins, and not before."""


@pytest.mark.slow
def test_workers_that_start_together_begin_once_all_have_loaded(tmp_path: Path) -> None:
    os.mkfifo(gate := tmp_path / "gate")
    start = threading.Barrier(2)
    quick = WorkerProcess(Doing(NO_WORKER), start=start)
    slow = WorkerProcess(Doing(f"{NO_WORKER}; open({str(gate)!r}).read()"), start=start)
    with gate.open("w"), pytest.raises(subprocess.TimeoutExpired):  # the slow one is loading now
        quick._process.wait(1)
    for process in (quick, slow):
        process.join(120)
        assert isinstance(process.error(), AttributeError)


def test_none_waits_for_one_that_ends_as_it_loads() -> None:
    start = threading.Barrier(2)
    failing = WorkerProcess(Doing("raise ValueError('done')"), start=start)
    other = WorkerProcess(Doing(NO_WORKER), start=start)
    for process, error in ((other, AttributeError), (failing, ValueError)):
        process.join(120)
        assert isinstance(process.error(), error)


WAITING = """
import streamgauge.operators.consumer.worker.worker as its
import streamgauge.operators.consumer.worker.worker_ipc as ipc

class Worker:
    figures = None

    def __init__(self, *_):
        pass

    def run(self):
        import time  # the class is made where a pickle is read, whose names it doesn't see

        time.sleep(1_000)

its.Worker, ipc._UNHEARD_SECONDS = Worker, 0.2
"""
"""A worker that waits for its brokers, whatever is asked of it."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_whose_run_was_killed_does_not_wait_for_brokers_for_ever() -> None:
    script = f"""
import time
from streamgauge.operators.consumer.worker.process import WorkerProcess
from streamgauge.tests.operators.consumer.worker.test_process import Doing

process = WorkerProcess(Doing({WAITING!r}))
print(process.pid, flush=True)
time.sleep(1_000)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_running(pid)
        run.kill()
    until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie, which nobody may clear away in a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

"""Workers that are forked from a process which has loaded what they run, and nothing that a fork breaks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, count, distinct, json
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.worker.process import PROCESS, WorkerProcess, worker_server
from streamgauge.operators.consumer.worker.worker_server import WorkerServer
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.warm_up.sketching import SketchingKinds

from ....waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


class Doing:
    """A plan that does something as soon as the process has it."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (self._code,)


def said(server: WorkerServer, expression: str) -> Any:
    """What an expression is in a new worker."""
    process = WorkerProcess(Doing(f"import os, sys; raise KeyError({expression})"), server)
    process.join(120)
    error = process.error()
    assert isinstance(error, KeyError), error
    return error.args[0]


def children(parent: int) -> list[int]:
    """The processes that a process has forked and not yet seen the end of."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@pytest.fixture
def server() -> Iterator[WorkerServer]:
    made = worker_server()
    assert made is not None
    yield made
    made.end()


def test_workers_have_what_they_run_and_no_threads_of_others(
    server: WorkerServer, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = Stream.from_schema({"user": pl.String, "at": pl.String}, time="at")
    server.prepare([SketchingKinds.of(rows.tumbling("1m").agg(users=distinct("user")))])
    loaded = ["operators.consumer.worker.worker", "sketches.hll.groups"]
    modules = [f"'streamgauge.{name}' in sys.modules" for name in loaded]
    with capfd.disabled():  # the server's standard error is another one than the worker's
        parent = said(server, "os.getppid()")
    assert parent != os.getpid()
    modules += ["'numba' in sys.modules", "'polars' in sys.modules"]
    said(server, f"print({', '.join(modules)}, file=sys.stderr)")
    assert capfd.readouterr().err.splitlines()[0] == "True True True True"
    assert "_polars_runtime" not in Path(f"/proc/{parent}/maps").read_text()


def test_workers_that_were_prepared_wait_until_they_are_wanted(server: WorkerServer) -> None:
    server.prepare([], workers=2)
    first, second = server.fork(), server.fork()
    until(lambda: "_polars_runtime" in Path(f"/proc/{second.pid}/maps").read_text())
    third = server.fork()  # more than were prepared
    assert len({first.pid, second.pid, third.pid}) == 3
    for process in (first, second, third):
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stdout.read() == b""


def test_workers_that_are_not_needed_after_all_end_and_say_nothing(
    server: WorkerServer, capfd: pytest.CaptureFixture[str]
) -> None:
    parent = said(server, "os.getppid()")
    capfd.readouterr()
    server.prepare([], workers=2)
    until(lambda: len(children(parent)) == 2)
    server.release()
    until(lambda: not children(parent))
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_worker_that_died_while_it_waited_is_not_given_out(server: WorkerServer) -> None:
    parent = said(server, "os.getppid()")
    server.prepare([], workers=1)
    until(lambda: len(children(parent)) == 1)
    os.kill(children(parent)[0], signal.SIGKILL)
    (spare,) = server._spares
    until(lambda: spare.poll() is not None)
    assert said(server, "1") == 1


@pytest.mark.slow
def test_workers_that_wait_in_another_environment_are_not_given_out(
    server: WorkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.prepare([], workers=1)
    monkeypatch.setenv("OF_A_TEST", "here")
    assert said(server, "os.environ['OF_A_TEST']") == "here"


@pytest.mark.slow
def test_a_run_that_is_refused_leaves_no_worker(server: WorkerServer, kafka: EmbeddedKafka) -> None:
    parent = said(server, "os.getppid()")
    rows = Stream.from_kafka(
        "absent", value=json({"at": pl.String}), time="at", bootstrap_servers=kafka.bootstrap_servers
    )
    with pytest.raises(TopicError, match="no topic 'absent'"):
        rows.tumbling("1m").agg(n=count()).start(workers=2)
    assert said(server, "os.getppid()") == parent  # what was asked of it before is done, too
    until(lambda: not children(parent))


@pytest.mark.slow
def test_what_a_decoder_prints_last_is_shown_too(
    server: WorkerServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    process = WorkerProcess(Doing("print('a word', end=''); raise SystemExit(0)"), server)
    process.join(120)
    assert capfd.readouterr().err == "a word"


@pytest.mark.slow
def test_what_cannot_be_loaded_is_left_to_workers(server: WorkerServer) -> None:
    server.prepare(Doing("raise ValueError('not here')"))
    assert said(server, "1") == 1


def test_a_worker_that_dies_is_replaced_by_one_from_the_same_server(server: WorkerServer) -> None:
    first = WorkerProcess(Doing("import time; time.sleep(600)"), server)
    parent = said(server, "os.getppid()")
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: first.ended)
    assert first.exit_text == "killed by signal 9"
    assert said(server, "os.getppid()") == parent


def test_workers_do_not_draw_alike(server: WorkerServer) -> None:
    draw = "(__import__('random').random(), __import__('numpy').random.random())"
    one, other = said(server, draw), said(server, draw)
    assert one[0] != other[0] and one[1] != other[1]


@pytest.mark.slow
def test_a_server_that_was_killed_is_started_again_and_its_workers_are_known_to_have_ended(
    server: WorkerServer,
) -> None:
    worker = WorkerProcess(Doing("import sys; sys.stdin.read()"), server)
    parent = said(server, "os.getppid()")
    os.kill(parent, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{parent}/exe").exists())
    assert not worker.ended
    worker.stop()
    until(lambda: worker.ended)
    assert said(server, "os.getppid()") != parent


@pytest.mark.slow
def test_another_environment_has_another_server_and_the_first_one_stays_for_its_workers(
    server: WorkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = WorkerProcess(Doing("import sys; sys.stdin.read(); sys.exit(3)"), server)
    parent = said(server, "os.getppid()")
    monkeypatch.setenv("OF_A_TEST", "here")
    other, heard = said(server, "(os.getppid(), os.environ['OF_A_TEST'])")
    assert other != parent and heard == "here"
    worker.stop()
    worker.join(120)
    assert isinstance(worker.error(), SystemExit)


@pytest.mark.slow
def test_a_server_without_work_ends_and_another_one_comes_when_it_is_needed() -> None:
    server = WorkerServer(PROCESS, idle_seconds=0.0)
    parent = said(server, "os.getppid()")
    until(lambda: not Path(f"/proc/{parent}/exe").exists())
    assert said(server, "os.getppid()") != parent
    server.end()


def test_the_server_ends_with_its_run(server: WorkerServer) -> None:
    parent = said(server, "os.getppid()")
    server.end()
    assert not Path(f"/proc/{parent}").exists()

"""A demo as a user runs it: however it ends, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.operators.java import JavaError, find_java

pytestmark = [pytest.mark.kafka, pytest.mark.apart]

PROGRAM = Path(sys.executable).with_name("streamgauge")
MARK = "STREAMGAUGE_TEST_MARK"
PATIENCE = 240  # seconds, on a machine that does much else


class Demo:
    """A demo in a process group of its own, as in a terminal; its descendants are known by a mark."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        self.mark = uuid.uuid4().hex
        environment = {**os.environ, MARK: self.mark, "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            [PROGRAM, "demo", "trending", "--port", "0", *map(str, arguments)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # As from a terminal, even where these tests themselves run under `nohup`.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def ended(self) -> tuple[int, str, str]:
        """Its exit code and what it said, once it is over."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, err = self.process.communicate()
            pytest.fail(f"the demo did not end:\n{err[-3000:]}")
        return self.process.returncode, out, err

    def descendants(self) -> dict[int, str]:
        """The processes that carry its mark, itself included."""
        by_key = {}
        for entry in Path("/proc").iterdir():
            try:
                if (
                    entry.name.isdigit()
                    and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes()
                ):
                    by_key[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return by_key

    def wait_for(self, *words: str) -> None:
        """Wait until a descendant's command has all the words."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if any(all(word in command for word in words) for command in self.descendants().values()):
                return
            time.sleep(0.05)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        pytest.fail(f"there was no process with {words}; the demo said:\n{self.ended()[2]}")

    def nothing_is_left(self) -> bool:
        """Whether all its processes are gone in the end."""
        deadline = time.monotonic() + PATIENCE
        while self.descendants() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.descendants()


linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are listed in /proc")
SPARK = pytest.mark.spark


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for temporary files whose name is as short as usual: sockets lie in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@linux
@pytest.mark.parametrize(
    ("engine", "moment", "requested"),
    [
        pytest.param(
            "local",
            "kafka.Kafka",
            [signal.SIGINT],
            marks=pytest.mark.slow,
            id="Ctrl-C while Kafka starts",
        ),
        pytest.param(
            "local", "forkserver", [signal.SIGTERM, *[signal.SIGINT] * 3], id="SIGTERM and Ctrl-C mid-stream"
        ),
        pytest.param(
            "spark",
            "SparkSubmit",
            [signal.SIGINT],
            marks=[SPARK, pytest.mark.soak],
            id="Ctrl-C while Spark starts",
        ),
        pytest.param(
            "spark",
            "forkserver",
            [signal.SIGHUP],
            marks=[SPARK, pytest.mark.soak],
            id="the terminal closed with Spark mid-stream",
        ),
    ],
)
def test_signals_stop_everything_it_began(
    tmp_path: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    moment: str,
    requested: list[signal.Signals],
) -> None:
    hide_java(tmp_path, monkeypatch)
    demo = Demo(scratch, "--engine", engine, "--rate", "500", "--seconds", "600")
    demo.wait_for(moment)
    for number in requested:
        # As a terminal, or a service's end: to all processes of the group.
        os.killpg(demo.process.pid, number)
        time.sleep(0.1)
    code, out, err = demo.ended()
    assert code == 130
    assert out == "" and "Traceback" not in err and err.strip().endswith("nothing was left running")
    assert demo.nothing_is_left()
    assert list(scratch.iterdir()) == []


def hide_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an old Java before the right one, which Spark itself would not look for elsewhere."""
    right, old = find_java(), folder / "old" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.21\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    try:
        find_java()
    except JavaError:
        monkeypatch.setenv("JAVA_HOME", str(right.home))


@linux
def test_ctrl_c_while_modules_are_loaded_is_the_end_without_a_word(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--engine", "local")
    while b"numpy" not in Path(f"/proc/{demo.process.pid}/maps").read_bytes():
        assert demo.process.poll() is None
        time.sleep(0.005)
    os.killpg(demo.process.pid, signal.SIGINT)
    code, out, err = demo.ended()
    assert (code, out) == (130, "") and "Traceback" not in err
    assert demo.nothing_is_left()


@linux
def test_kill_minus_nine_leaves_nothing_running(scratch: Path) -> None:
    demo = Demo(scratch, "--engine", "local", "--rate", "500", "--seconds", "600")
    demo.wait_for("forkserver")
    demo.process.kill()
    demo.process.communicate()
    assert demo.nothing_is_left()

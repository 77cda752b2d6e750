"""The demo as a user runs it: its JSON, its exit, and nothing left behind however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.java import JavaError, find_java

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
            [PROGRAM, "demo", "trending", *map(str, arguments)],
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
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if (
                    entry.name.isdigit()
                    and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes()
                ):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

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

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, while the demo runs."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if holds():
                return
            time.sleep(0.05)
        pytest.fail(f"it never came to that; the demo said:\n{self.ended()[2]}")

    def nothing_is_left(self) -> bool:
        """Whether all its processes are gone in the end."""
        deadline = time.monotonic() + PATIENCE
        while self.descendants() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.descendants()


linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are told by /proc")
SPARK = pytest.mark.spark
engines = pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=SPARK)])


def whole(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    demo = Demo(folder, "--json", *arguments)
    code, out, err = demo.ended()
    assert code == 0, err
    assert demo.nothing_is_left()
    assert list(folder.iterdir()) == []
    return json.loads(out)


@linux
@engines
def test_each_event_of_a_recording_counts_once(recordings: Path, tmp_path: Path, engine: str) -> None:
    recorded = (recordings / "social" / "jetstream_expected_v1.jsonl").read_text("utf-8")
    (tmp_path / "in").mkdir()
    doubled = tmp_path / "in" / "doubled.jsonl"
    doubled.write_text(recorded + "not json\n" + recorded, "utf-8")
    (tmp_path / "out").mkdir()
    told = whole(tmp_path / "out", "--engine", engine, "--input", doubled)
    assert told["engine"] == engine
    assert {key: told[key] for key in ("read", "counted", "filtered", "late", "dead_lettered")} == {
        "read": 2 * 152 + 1,
        "counted": 17,
        "filtered": 2 * 152 - 17,
        "late": 0,
        "dead_lettered": 1,
    }
    first, second = told["windows"]
    assert (first["start"], first["posts"]) == ("2026-07-04T14:37:30Z", 1)
    assert (second["start"], second["posts"], second["authors"]["exact"]) == ("2026-07-04T14:38:00Z", 16, 14)
    assert sorted(tag["tag"] for tag in second["top_tags"]) == [
        "HowToTellAiToShutUp",
        "IndieRebellion",
        "balanwonderworldoc",
        "talesatwonderworld",
    ]
    assert told["all_inside_bounds"] is True and told["accounts_agree"] is True


@linux
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[SPARK, pytest.mark.soak])])
def test_a_broker_killed_in_mid_stream_is_waited_for_and_costs_no_post(tmp_path: Path, engine: str) -> None:
    options = ("--engine", engine, "--seconds", "8", "--rate", "1000", "--seed", "5")
    demo = Demo(tmp_path, "--json", *options)
    demo.wait_until(lambda: sum(log.stat().st_size for log in tmp_path.glob("*/log/posts-*/*.log")) > 100_000)
    (broker,) = (
        pid for pid, command in demo.descendants().items() if re.match(r"\S*java .*kafka.Kafka", command)
    )
    os.kill(broker, signal.SIGKILL)
    code, out, err = demo.ended()
    assert code == 0, err
    assert "the broker has ended; it is started again" in err and "the broker serves again" in err
    told = json.loads(out)
    assert told["read"] > 4_000 and told["counted"] > 0.98 * told["read"]
    assert told["read"] == sum(told[key] for key in ("counted", "filtered", "late", "dead_lettered"))
    assert told["messages_per_second"] > 0
    assert told["accounts_agree"] is True
    # Its windows begin with the moment, and of their estimates 99.7 % are inside: one may be outside.
    inside = [window["inside_bounds"] for window in told["windows"]]
    assert inside and inside.count(False) <= 1 and told["all_inside_bounds"] is all(inside)
    assert demo.nothing_is_left()
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.parametrize(
    ("engine", "moment", "asked"),
    [
        pytest.param("local", "kafka.Kafka", [signal.SIGINT], id="Ctrl-C while Kafka starts"),
        pytest.param(
            "local", "spawn_main", [signal.SIGTERM, *[signal.SIGINT] * 3], id="SIGTERM and Ctrl-C mid-stream"
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
            "spawn_main",
            [signal.SIGHUP],
            marks=SPARK,
            id="the terminal closed with Spark mid-stream",
        ),
    ],
)
def test_told_to_end_it_stops_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, moment: str, asked: list[signal.Signals]
) -> None:
    hide_java(tmp_path, monkeypatch)
    (tmp_path / "scratch").mkdir()
    demo = Demo(tmp_path / "scratch", "--engine", engine, "--rate", "500", "--seconds", "600")
    demo.wait_for(moment)
    for number in asked:
        # As a terminal, or a service's end: to all processes of the group.
        os.killpg(demo.process.pid, number)
        time.sleep(0.1)
    code, out, err = demo.ended()
    assert code == 130
    assert out == "" and "Traceback" not in err and err.strip().endswith("nothing was left running")
    assert demo.nothing_is_left()
    assert list((tmp_path / "scratch").iterdir()) == []


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
def test_kill_minus_nine_leaves_nothing_running(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--engine", "local", "--rate", "500", "--seconds", "600")
    demo.wait_for("spawn_main")
    demo.process.kill()
    demo.process.communicate()
    assert demo.nothing_is_left()


@linux
def test_keep_leaves_the_broker_up_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.cache import cache_folder

    # The state of a broker that is left up lies in the cache folder, the jars too.
    jars = cache_folder() / "kafka"
    own = tmp_path / "cache"
    (own / "kafka").mkdir(parents=True)
    for entry in jars.glob("jars-*"):
        (own / "kafka" / entry.name).symlink_to(entry)
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(own))
    (tmp_path / "scratch").mkdir()
    demo = Demo(
        tmp_path / "scratch", "--engine", "local", "--json", "--seconds", "2", "--rate", "500", "--keep"
    )
    code, out, err = demo.ended()
    try:
        assert code == 0, err
        address = json.loads(out)["bootstrap_servers"]
        assert any("kafka.Kafka" in command for command in demo.descendants().values())
        status = subprocess.run([PROGRAM, "kafka", "status"], capture_output=True, text=True)
        assert status.returncode == 0 and address in status.stdout
    finally:
        subprocess.run([PROGRAM, "kafka", "stop"], check=True, capture_output=True)
    assert demo.nothing_is_left()

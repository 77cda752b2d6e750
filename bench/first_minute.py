"""The demo's first minute: when its page is there, when it has numbers of all apps, and when it has ended.

Everything must be set up and its kernels compiled (``streamgauge env warm``). Two figures each: seconds of
the clock, which other work on the machine adds to, and seconds of processor time of the demo with all
processes that it started. Linux only: processes are known by /proc.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from bench.processor import cores

SECONDS = 20
MARK = "STREAMGAUGE_FIRST_MINUTE"
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
TARGETS = {"page address": 10.0, "numbers of all apps": 30.0, "the end": SECONDS + 40.0}
"""Seconds after the command on two quiet cores."""
LEAST_SECONDS = 0.5
"""What a program took that is worth a line."""


class Processes:
    """The processor time of a program and of all that it started, those included that have ended."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._seconds: dict[tuple[int, str], float] = {}
        self.by_program: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """All of them so far."""
        return sum(self._seconds.values())

    def end(self) -> Mapping[str, float]:
        """Look no more; gives the seconds of each program."""
        self._over.set()
        self._thread.join()
        return dict(sorted(self.by_program.items(), key=lambda one: -one[1]))

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    self._add(folder)
                except OSError:
                    continue

    def _add(self, folder: Path) -> None:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        key = int(folder.name), fields[19]  # with the moment of its start: numbers come again
        if key not in self._seconds and self._mark not in (folder / "environ").read_bytes():
            return
        elapsed = (int(fields[11]) + int(fields[12])) / TICK
        program = _program((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        grown = elapsed - self._seconds.get(key, 0.0)
        self._seconds[key] = elapsed
        self.by_program[program] = self.by_program.get(program, 0.0) + grown


def _program(command: str) -> str:
    """What a process is, by its command."""
    for word, name in {
        "kafka.Kafka": "Kafka",
        "StorageTool": "Kafka's formatting",
        "SparkSubmit": "Spark",
        "org.apache.spark": "Spark",
        "forkserver": "senders",
        "spawn_main": "senders",
        "streamgauge demo": "the demo",
    }.items():
        if word in command:
            return name
    module = re.search(r"-m (\S+)(?: (pyspark\S+))?", command)
    return " ".join(filter(None, module.groups())) if module else command[:60]


def measured() -> dict[str, Any]:
    """Run the demo once; the moments by name, in seconds of the clock and of processor time."""
    mark = uuid.uuid4().hex
    program = Path(sys.executable).with_name("streamgauge")
    options = "--engine", "mixed", "--seconds", str(SECONDS), "--port", "0", "--json"
    command = [program, "demo", "apps", *options]
    processes, begin = Processes(mark), time.monotonic()
    moments: dict[str, tuple[float, float]] = {}

    def now(name: str) -> None:
        moments.setdefault(name, (time.monotonic() - begin, processes.seconds))

    with tempfile.TemporaryFile("w+") as out:
        demo = subprocess.Popen(
            command, env={**os.environ, MARK: mark}, stdout=out, stderr=subprocess.PIPE, text=True
        )
        assert demo.stderr is not None
        asker = None
        for line in demo.stderr:
            if (page := re.search(r"the page: (http://\S+)", line)) is not None:
                now("page address")
                asker = threading.Thread(target=_ask, args=(page[1], demo, now), daemon=True)
                asker.start()
        demo.wait()
        now("the end")
        if asker is not None:
            asker.join()
        out.seek(0)
        results = json.load(out)
    return {"moments": moments, "programs": processes.end(), "results": results}


def _ask(page: str, demo: subprocess.Popen[str], now: Any) -> None:
    """Ask the page for each app's windows and alerts until all have both, or the demo is over."""
    client = httpx.Client(base_url=page, timeout=30.0)
    counted: set[str] = set()
    while demo.poll() is None:
        try:
            apps = client.get("apps").json()["apps"]
            names = [one["name"] if isinstance(one, dict) else one for one in apps]
            for name in set(names) - counted:
                parts = client.get(f"apps/{name}").json()["parts"].values()
                tables = [client.get(f"tables/{part['table']}/rows").json() for part in parts]
                if any(table.get("rows") for table in tables):
                    counted.add(name)
                    now(f"numbers of {name}")
            if counted >= set(names):
                now("numbers of all apps")
                return
        except (httpx.HTTPError, ValueError, KeyError, AttributeError):
            pass
        time.sleep(0.25)


def main() -> list[dict[str, Any]]:
    """The table."""
    run = measured()
    rows = []
    for name, (clock, processor) in run["moments"].items():
        target = f"≤ {TARGETS[name]:.0f} s" if name in TARGETS else ""
        ours = f"{clock:.1f} s of the clock, {processor:.1f} s of processor time"
        rows.append({"claim": f"demo: {name}", "ours": ours, "peer": "", "ratio": "", "target": target})
    for name, seconds in run["programs"].items():
        if seconds < LEAST_SECONDS:
            continue
        ours = f"{seconds:.1f} s"
        claim = f"demo: processor time of {name} ({cores()} cores)"
        rows.append({"claim": claim, "ours": ours, "peer": "", "ratio": "", "target": ""})
    return rows


if __name__ == "__main__":
    for row in main():
        print(json.dumps(row, ensure_ascii=False))

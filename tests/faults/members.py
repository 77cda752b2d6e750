"""The members of a group, seen from the test: started, armed, struck, waited for."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.operators.table.schema import from_ipc

from ..waiting import until
from .posts import Place

_MODULE = "streamgauge.tests.faults.member"
PATIENCE = 300.0
"""Seconds after which a group that has not come round counts as hanging."""


class MemberFailed(AssertionError):
    """A member's run ended with an error."""


class Member:
    """One process of `member.py`."""

    def __init__(self, name: Path, task: Mapping[str, Any], release: Path | None = None) -> None:
        self.log = name.with_suffix(".log")
        self.windows: dict[str, list[pa.Table]] = defaultdict(list)
        self.states: list[dict[str, Any]] = []
        self.reached = ""
        self.armed = dict(task["armed"])
        self.failed = ""
        path = [] if release is None else [str(release)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)])},
            )
        self.send(**task)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def alive(self) -> bool:
        """Whether the process is there, frozen or not."""
        return self._process.poll() is None

    @property
    def state(self) -> dict[str, Any]:
        """What it reported last of the log."""
        return self.states[-1] if self.states else {"marks": []}

    def send(self, **task: Any) -> None:
        """Send it a task."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """As a power cut does."""
        self._process.kill()
        self.gone()

    def freeze(self) -> None:
        """Stop it from running."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it run again."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Have it end in order."""
        self.send(stop=True)
        self.gone()
        if self.failed:
            raise MemberFailed(self.output)

    def gone(self) -> None:
        """Wait for its end and for its last words."""
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"a member did not end within {PATIENCE:.0f} s; see {self.log}") from None
        self._reading.join()

    @property
    def output(self) -> str:
        """Its error, with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([self.failed, *lines[-25:]])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return  # killed as it spoke
            payload = json.loads(line)
            if "window" in payload:
                self.windows[payload["stream"]].append(from_ipc(base64.b64decode(payload["window"])))
            elif "marks" in payload:
                self.states.append(payload)
                del self.states[:-3]
            elif "reached" in payload:
                self.reached = payload["reached"]
            elif "armed" in payload:
                self.armed = payload["armed"]
            elif "failed" in payload:
                self.failed = f"{payload['failed']}: {payload['text']}"


class Group:
    """The members of one group, those that are gone included.

    `task` is what each is to run; `folder` takes their logs. Members that join are of the `release` whose
    package lies in that folder, by default of this one.
    """

    release: Path | None = None

    def __init__(self, folder: Path, task: Mapping[str, Any]) -> None:
        self.folder = folder
        self.task = dict(task)
        self.members: list[Member] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def alive(self) -> list[Member]:
        """Those that are there."""
        return [member for member in self.members if member.alive]

    def join(self, armed: Mapping[str, str] = {}, disk_full: bool = False) -> Member:
        """Start one more."""
        name = self.folder / f"member-{len(self.members)}"
        member = Member(name, {**self.task, "armed": dict(armed), "disk_full": disk_full}, self.release)
        self.members.append(member)
        return member

    def arm(self, point: str, how: str, but: Member | None = None) -> None:
        """The first to come to this point is struck, `but` one member; more than one may."""
        for member in self.members:
            member.reached = ""
        for member in self.alive:
            if member is not but:
                member.armed = {point: how}
                member.send(armed=member.armed)

    def struck(self) -> list[Member]:
        """The members that came to their point; no other is armed any more."""
        until(lambda: self.check() or any(member.reached for member in self.members), PATIENCE)
        others = [member for member in self.alive if not member.reached]
        for member in others:
            member.send(armed={})
        for member in others:
            until(lambda m=member: self.check() or m.reached or not m.armed or not m.alive, PATIENCE)
        return [member for member in self.members if member.reached]

    def begun(self) -> None:
        """Wait until all that are there run: a run that begins while the broker is away ends at once."""
        until(lambda: self.check() or all(member.states for member in self.alive), PATIENCE)

    def check(self) -> None:
        """Raise `MemberFailed` if one has ended with an error."""
        for member in self.members:
            if member.failed:
                raise MemberFailed(member.output)

    def marks(self) -> dict[Place, int]:
        """How far the log covers each input partition, by the member that has seen most of it."""
        by_key: dict[Place, int] = {}
        for member in self.members:
            for topic, partition, offset in member.state["marks"]:
                by_key[topic, partition] = max(offset, by_key.get((topic, partition), 0))
        return by_key

    def accounts(self) -> list[dict[str, int]]:
        """What each living member knows of what became of the messages."""
        return [account for member in self.alive if (account := member.state.get("account")) is not None]

    def stop(self) -> None:
        """Have all end in order."""
        for member in self.alive:
            member.send(stop=True)
        for member in self.alive:
            member.stop()

    def end(self) -> None:
        """Leave no process behind."""
        for member in self.alive:
            member.thaw()
            member.kill()

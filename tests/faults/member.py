"""One member of a group as a process of its own: its worker, its merger, and who strikes it at which point.

Started as ``python -m streamgauge.tests.faults.member``. Each line of its standard input is a task as JSON,
the first of which says what to run. Each line of its standard output tells of something as JSON: how far the
log is, a window that was handed over (an Arrow stream), a point that was reached, an error.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import queue
import resource
import signal
import sys
import threading
from typing import Any

import pyarrow as pa

from streamgauge.operators.consumer.merge import closed_windows
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.table.schema import to_ipc

from . import points
from .posts import asked

_TELL_SECONDS = 0.1


class Member:
    """This process."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._armed: dict[str, str] = task["armed"]
        self._go, self._arming = threading.Event(), threading.Lock()
        self._tasks: queue.Queue[dict[str, Any]] = queue.Queue()
        self._says = threading.Lock()
        if task["disk_full"]:
            _fill_the_disk()
        options = RunOptions(on_window=self._keep, **task["options"])
        stream = asked(task["topics"], task["servers"], task["config"])
        points.watch(lambda topic: ".table." in topic, self._reached)
        self._run = start(stream, options)

    def follow(self) -> None:
        """Do what the tasks say, and tell how it goes, until the run has ended."""
        threading.Thread(target=self._listen, daemon=True).start()
        while self._run.running:
            self._tell()
            try:
                task = self._tasks.get(timeout=_TELL_SECONDS)
            except queue.Empty:
                continue
            if task.get("stop"):
                self._run.stop()
            if "armed" in task:
                with self._arming:
                    self._armed = task["armed"]
                    self._go.set()
        self._run.wait()
        self._tell()

    def say(self, **told: Any) -> None:
        """Tell whoever started this process."""
        with self._says:
            print(json.dumps(told), flush=True)

    def _listen(self) -> None:
        for line in sys.stdin:
            task = json.loads(line)
            if task.get("go"):
                self._go.set()
            else:
                self._tasks.put(task)

    def _tell(self) -> None:
        states = self._run._only.merger.states()
        if not states:
            self.say(marks=[])
            return
        state = states[0]
        self.say(
            marks=[[*where, mark.position.offset] for where, mark in state.marks.items()],
            account=state.account.to_dict(),
            assigned=self._run.assigned,
            merging=len(self._run._only.merger.mergers),
            partitions=len(self._run._only.merger._inputs),
            overlaps=sum(state.overlaps for state in states),
        )

    def _reached(self, point: str) -> None:
        """Do to this process what it was armed with for this point, once."""
        with self._arming:
            how = self._armed.get(point)
            if how is None:
                return
            self._armed = {}
            self._go.clear()
        self.say(reached=point, how=how)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            assert self._go.wait(600), "nobody said how to go on"

    def _keep(self, table: pa.Table) -> None:
        self.say(window=base64.b64encode(to_ipc(table)).decode())


def _fill_the_disk() -> None:
    """No file of this process can be written to any more, and every closed window goes to one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    closed_windows.ClosedWindows.__init__.__defaults__ = (1, closed_windows.KEPT_BYTES)


def main() -> int:
    """Run until told to stop, or until an error, which is told."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    member = None
    try:
        member = Member(json.loads(sys.stdin.readline()))
        member.follow()
    except BaseException as error:
        logging.getLogger("streamgauge.faults").exception("this member failed")
        print(json.dumps({"failed": type(error).__name__, "text": str(error)}), flush=True)
        return 1
    print(json.dumps({"ended": True}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

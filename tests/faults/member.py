"""One member of a group as a process of its own: its worker, its merger, and who strikes it at which point.

Started as ``python -m streamgauge.tests.faults.member``. Each line of its standard input is a task as JSON,
the first says what to run. Each line of its standard output reports something as JSON: how far the
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
from functools import partial
from typing import Any

import pyarrow as pa

from streamgauge.operators.consumer.merge import closed_windows
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.supervision.exposed_metrics import ExposedMetrics
from streamgauge.operators.consumer.supervision.run_planning import plans_of
from streamgauge.operators.consumer.supervision.supervisor import Supervisor
from streamgauge.operators.table.schema import to_ipc

from . import points
from .posts import StreamCase, stream_of

_REPORT_SECONDS = 0.1


class Member:
    """This process."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._armed: dict[str, str] = task["armed"]
        self._go, self._arming = threading.Event(), threading.Lock()
        self._tasks: queue.Queue[dict[str, Any]] = queue.Queue()
        self._says = threading.Lock()
        if task["disk_full"]:
            _fill_the_disk()
        requested = {name: StreamCase(**reported) for name, reported in task["asked"].items()}
        where = task["topics"], task["servers"], task["config"]
        streams = {name: stream_of(reported, *where) for name, reported in requested.items()}
        options = {
            name: RunOptions(on_window=None if own.rows_to else partial(self._keep, name), **task["options"])
            for name, own in requested.items()
        }
        points.watch(lambda topic: ".table." in topic, self._reached)
        exposed = ExposedMetrics(next(iter(options.values())))
        self._run = Supervisor(plans_of(streams, options), exposed)

    def follow(self) -> None:
        """Do what the tasks say, and report how it goes, until the run has ended."""
        threading.Thread(target=self._listen, daemon=True).start()
        while self._run.running:
            self._report()
            try:
                task = self._tasks.get(timeout=_REPORT_SECONDS)
            except queue.Empty:
                continue
            if task.get("stop"):
                self._run.stop()
            if "armed" in task:
                with self._arming:
                    self._armed = task["armed"]
                    self._go.set()
                    self.say(armed=self._armed)
        self._run._ended(None)
        self._report()

    def say(self, **reported: Any) -> None:
        """Report to the parent process."""
        with self._says:
            print(json.dumps(reported), flush=True)

    def _listen(self) -> None:
        for line in sys.stdin:
            task = json.loads(line)
            if task.get("go"):
                self._go.set()
            else:
                self._tasks.put(task)
        os._exit(1)  # the test is gone

    def _report(self) -> None:
        mergers = [own.merger for own in self._run._results.values()]
        known = [merger.states() for merger in mergers]
        if not all(known):
            self.say(marks=[])
            return
        # Of streams that share a reading, the one that is behind.
        marks = [{w: mark.position.offset for w, mark in states[0].marks.items()} for states in known]
        accounts = [states[0].account for states in known]
        self.say(
            marks=[[*where, min(own.get(where, 0) for own in marks)] for where in marks[0]],
            account=min(accounts, key=lambda account: account.read).to_dict(),
            assigned=self._run.assigned,
            merging=sum(len(merger.mergers) for merger in mergers),
            partitions=min(len(merger._inputs) for merger in mergers),
            overlaps=sum(state.overlaps for states in known for state in states),
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
            # Before it could report that it is armed with nothing.
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
        if how == "wait":
            assert self._go.wait(600), "nobody said how to go on"

    def _keep(self, stream: str, table: pa.Table) -> None:
        self.say(window=base64.b64encode(to_ipc(table.to_arrow())).decode(), stream=stream)


def _fill_the_disk() -> None:
    """No file of this process can be written to any more, and every closed window goes to one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    closed_windows.ClosedWindows.__init__.__defaults__ = (1, closed_windows.KEPT_BYTES)


def main() -> int:
    """Run until a stop is requested, or until an error, which is reported."""
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

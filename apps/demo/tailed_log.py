"""Generated lines that arrive as on a server: a program writes a log, and an agent tails it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from ...agents.ingest.agent import Agent
from ...agents.ingest.document import FieldLines, plan_of
from ..recordings.batch import Source

_TICK = 0.05


class TailedLog:
    """Writes a source's messages as lines to a log when they are due; an agent sends them to a topic.

    It has the interface of `Replay`.
    """

    def __init__(self, source: Source, log: Path, topic: str, bootstrap_servers: str) -> None:
        self._source, self._log, self.topic = source, log, topic
        sink = {
            "type": "kafka",
            "topic": topic,
            "bootstrap_servers": bootstrap_servers,
            "config": {"log_level": 0},
        }
        document = {"sources": {"log": {"type": "tail", "files": [str(log)]}}, "sinks": {"kafka": sink}}
        self.agent = Agent(plan_of(document, FieldLines("demo"), f"demo-{topic}", log.parent))
        self._written, self._all_written = 0, False
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), name=f"demo {log.name}", daemon=True)
            for work in (self._write, self.agent.run)
        ]

    def start(self) -> TailedLog:
        """Start writing and tailing."""
        for thread in self._threads:
            thread.start()
        return self

    @property
    def sent(self) -> int:
        """The number of lines in the topic."""
        return self.agent.account.sent

    @property
    def done(self) -> bool:
        """Whether all lines are in the topic. Raises the error that ended the agent."""
        if self._error is not None:
            raise self._error
        return self._all_written and self.sent == self._written

    def stop(self) -> None:
        """End both."""
        self._over.set()
        self.agent.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error

    def _write(self) -> None:
        begin = time.monotonic()
        with self._log.open("ab") as file:
            for batch in self._source.batches():
                for value, due in zip(batch.values.to_pylist(), batch.due.tolist()):
                    if due > time.monotonic() - begin:
                        file.flush()
                    while due > time.monotonic() - begin:
                        if self._over.wait(_TICK):
                            return
                    file.write(value + b"\n")
                    self._written += 1
        self._all_written = True

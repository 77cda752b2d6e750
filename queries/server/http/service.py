"""What the server serves: tables, and the limits for questions about them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from ...answers.answers import Answer, Limits, answer
from ...question.question import Question
from ...views.merge_cache import Deadline, MergeCache
from ...views.view import ServedTable
from .errors import Problem

T = TypeVar("T")


@dataclass
class Service:
    """Tables by name, and limits: `threads` questions at a time, `waiting` more, `seconds` for each in total.

    `live` is the number of simultaneous live views. Questions are answered in threads whose kernels release
    Python's lock, so that live views and other answers continue meanwhile.
    """

    tables: Mapping[str, ServedTable]
    rollups: MergeCache = field(default_factory=MergeCache)
    limits: Limits = field(default_factory=Limits)
    threads: int = 4
    waiting: int = 64
    seconds: float = 30.0
    live: int = 100

    def __post_init__(self) -> None:
        self._limiter: CapacityLimiter | None = None
        self._answering = 0
        self._stopping: asyncio.Event | None = None
        self.views = 0

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the server is stopping; live views end then. Belongs to the running event loop."""
        if self._stopping is None:
            self._stopping = asyncio.Event()
        return self._stopping

    def table(self, name: str) -> ServedTable:
        """The table with this name. Raises `Problem`."""
        if name not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise Problem(404, "No such table", f"there is no table {name!r}; there are {known}")
        return self.tables[name]

    async def ask(self, table: ServedTable, question: Question, write: Callable[[Answer], T]) -> T:
        """The answer, serialised by `write`. Raises what `answer` raises, and `Problem` beyond the limits."""
        deadline = Deadline(time.monotonic() + self.seconds)

        def run() -> T:
            deadline.check()
            return write(answer(table.view(), question, self.rollups, self.limits, deadline))

        return await self.in_thread(run)

    async def sql(self, text: str, write: Callable[[Answer], T]) -> T:
        """The answer to a query in SQL, serialised by `write`. Raises as `ask` does, and `SqlError`."""
        deadline = Deadline(time.monotonic() + self.seconds)

        def run() -> T:
            # The parser of the language is loaded only if it is used.
            from ...sql.run.server_query import server_query_answer

            deadline.check()
            return write(server_query_answer(text, self.tables, self.rollups, self.limits, deadline))

        return await self.in_thread(run)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """The result of a call, made in a thread when one is free. Raises `Problem` if too many wait."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(self.threads)
        if self._answering >= self.threads + self.waiting:
            raise Problem(
                429,
                "Too many questions at once",
                f"{self._answering} are being answered; ask again in a second",
                1,
            )
        self._answering += 1
        try:
            return await to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._answering -= 1

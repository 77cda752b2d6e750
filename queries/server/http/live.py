"""Live answers as server-sent events: the current answer, and a new one after each change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...answers.answers import TooMuch
from ...question.question import BadQuestion, Question
from ...response_format import to_dict
from ...views.merge_cache import OutOfTime
from ...views.view import NotReady, ServedTable
from .errors import Problem, problem_of
from .events import EventStream
from .service import Service

_PASSING = ("lag", "watermark")


class LiveView(EventStream):
    """One client's view of one question about a table."""

    def __init__(
        self, service: Service, table: ServedTable, question: Question, interval: float, last: str | None
    ) -> None:
        super().__init__(service, interval, last)
        self._table, self._question = table, question

    @property
    def about(self) -> str:
        """The table's name."""
        return self._table.name

    async def refusal(self) -> Problem | None:
        """What is wrong with the question; temporary problems are sent as events."""
        try:
            await self._service.ask(self._table, self._question, lambda answer: None)
        except (BadQuestion, TooMuch) as error:
            return problem_of(error)
        except (NotReady, OutOfTime, Problem):
            pass
        return None

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """See `EventStream`."""
        end: Callable[[], None] = self._table.watch(changed)
        return end

    async def current_event(self) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
        """The current answer, or why there is none."""
        try:
            return "answer", await self._service.ask(self._table, self._question, to_dict), _PASSING
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            return "problem", problem.describe(), ()

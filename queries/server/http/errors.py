"""Errors as ``application/problem+json`` (RFC 9457): each says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ....sketches.core.errors import StreamgaugeError
from ...answers.answers import TooMuch
from ...question.question import BadQuestion
from ...response_format import json_bytes
from ...sql.errors import SqlError
from ...views.merge_cache import OutOfTime
from ...views.view import NotReady


class Problem(StreamgaugeError):
    """An error response; `retry_after` is the number of seconds after which a retry may succeed.

    `place` is the position of an error in SQL text: the line and the column.
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        retry_after: int | None = None,
        place: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail, self.retry_after = status, title, detail, retry_after
        self.place = dict(place or {})

    def describe(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"title": self.title, "status": self.status, "detail": self.detail, **self.place}

    def response(self) -> Response:
        """As a response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(json_bytes(self.describe()), self.status, headers, "application/problem+json")


def problem_of(error: Exception) -> Problem | None:
    """The problem for an error; None for an unexpected error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, BadQuestion):
        return Problem(400, "The question is not valid", str(error))
    if isinstance(error, SqlError):
        place = {"line": error.line, "column": error.column}
        return Problem(400, "The statement is not valid", error.message, place=place)
    if isinstance(error, TooMuch):
        return Problem(422, "The question asks for too much", str(error))
    if isinstance(error, NotReady):
        return Problem(503, "The table can't answer yet", str(error), 1)
    if isinstance(error, OutOfTime):
        return Problem(
            503, "The question took too long", "ask for a shorter span or fewer groups, or ask again", 1
        )
    return None


async def respond(request: Request, error: Exception) -> Response:
    """The response to one of our errors."""
    problem = problem_of(error)
    assert problem is not None
    return problem.response()


async def respond_http(request: Request, error: Exception) -> Response:
    """The response to an error of the framework: an unknown path or method."""
    assert isinstance(error, HTTPException)
    details = {
        404: f"there is nothing at {request.url.path}; /tables lists the tables, /docs the questions",
        405: f"{request.url.path} does not accept {request.method}; /docs lists what it accepts",
    }
    return Problem(error.status_code, error.detail, details.get(error.status_code, error.detail)).response()


async def respond_gone(request: Request, error: Exception) -> Response:
    """The response to a client that left before its request was complete: nobody reads it."""
    return Response(status_code=400)


HANDLERS: dict[Any, Any] = {
    **dict.fromkeys((Problem, BadQuestion, SqlError, TooMuch, NotReady, OutOfTime), respond),
    HTTPException: respond_http,
    ClientDisconnect: respond_gone,
}
"""Exception handlers for Starlette."""

"""A client of the query server: the same questions, with answers as Polars frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
import polars as pl

from ..operators.windows.durations import CalendarLength, Duration
from ..sketches.core.errors import StreamgaugeError
from .answers.answers import Answer
from .question.question import KINDS
from .response_format import ARROW, from_arrow

Moment = str | datetime
Names = str | Sequence[str]


class QueryError(StreamgaugeError, RuntimeError):
    """A question that the server refused or didn't answer; `status` is the HTTP status, 0 if none."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Client:
    """Query the tables of a query server, which `streamgauge serve` starts.

        with Client("http://127.0.0.1:8055", token="…") as client:
            client.ask("top-k", "posts", column="tags", last="1h", k=20).rows       # a Polars frame
            client.ask("distinct", "posts", column="users", by="lang", keys={"lang": ["en", None]})
            for answer in client.live("rows", "posts", order="-posts", limit=10):
                print(answer.rows, answer.final)

    Each number has the bounds that its aggregate promises, at the confidence stated there (`count`,
    `distinct`, …); exact aggregates are exact. An `Answer` also has the windows that it covers, whether it is
    final, and what is missing. `seconds` limits the time of an answer.

    Raises `QueryError` with the server's message if it refuses the question, and if no server answers;
    `ValueError` for an invalid address.

    The parameters of questions are documented on the server's page ``/docs``.

    >>> import streamgauge as sg
    >>> client = sg.Client("http://127.0.0.1:8055", token="not shown anywhere")
    >>> client
    Client('http://127.0.0.1:8055')
    """

    def __init__(self, url: str, token: str | None = None, seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f'{url!r} is not the address of a server; write one such as "http://127.0.0.1:8055"'
            )
        self.url = url.rstrip("/")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=seconds)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def tables(self) -> list[dict[str, Any]]:
        """The tables, their columns and their progress. Raises `QueryError`."""
        response = self._sent("GET", "/tables")
        return response.json()["tables"]

    def ask(
        self,
        question: str,
        table: str,
        *,
        column: str | None = None,
        columns: Names | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        last: Duration | None = None,
        open: bool = True,
        every: Duration | None = None,
        zone: str | None = None,
        offset: Duration | None = None,
        by: Names | None = None,
        keys: Mapping[str, Any] | None = None,
        k: int | None = None,
        q: float | Sequence[float] | None = None,
        x: float | Sequence[float] | None = None,
        item: Any = None,
        order: str | None = None,
        limit: int | None = None,
        other: str | None = None,
        other_keys: Mapping[str, Any] | None = None,
        other_since: Moment | None = None,
        other_until: Moment | None = None,
    ) -> Answer:
        """Ask one question; the rows of the answer have bounds beside each estimate.

        `question` is ``"rows"``, ``"distinct"``, ``"top-k"``, ``"quantiles"``, ``"cdf"``, ``"frequency"``,
        ``"membership"``, ``"sample"`` or ``"sets"``. `since`, `until` and `last` select windows, `keys`
        selects groups by the values of their keys (several in a list, None for groups without one). `by`
        names the keys to preserve, and all others are merged (`[]`: all); `every` is the length of windows to
        merge into (``"window"``: as they are, ``"span"``: all into one), with `offset` and `zone` as in
        `merge`. The other parameters belong to single questions: `column` to all but rows, `columns`, `order`
        and `limit` to rows, `k` to top-k, ranks `q` to quantiles, values `x` to cdf, `item` to frequency and
        membership, and `other…` to sets. Items have the types of their column.

        Raises `QueryError` if the server refuses the question, `ValueError` for an unknown question.
        """
        body = _body(
            question,
            **{"column": column, "columns": columns, "from": since, "to": until, "last": last, "open": open},
            every=every,
            zone=zone,
            offset=offset,
            by=by,
            key=keys,
            k=k,
            q=q,
            x=x,
            item=item,
            order=order,
            **{"limit": limit, "other": other, "other-key": other_keys, "other-from": other_since},
            **{"other-to": other_until},
        )
        path = f"/tables/{quote(table, safe='')}/{question}"
        return from_arrow(self._sent("POST", path, json=body, headers={"Accept": ARROW}).content)

    def sql(self, text: str) -> Answer:
        """Ask one SELECT whose FROM names a table of the server.

        `rows` are the query's own columns. `bounds` holds, for each column that is an estimate, a list of
        ``[lower, upper]`` for each row. ``docs/sql.md`` describes the queries.

            text = "SELECT lang, APPROX_COUNT_DISTINCT(user) AS users FROM posts GROUP BY lang"
            client.sql(text).bounds["users"]

        Raises `QueryError` with the server's message, including line and column.
        """
        return from_arrow(self._sent("POST", "/sql", json={"sql": text}, headers={"Accept": ARROW}).content)

    def get(self, question: str, table: str, parameters: Mapping[str, Sequence[Any]]) -> Answer:
        """Ask with the server's own parameters, each with a list of values; the answer has bounds.

        The page ``/docs`` lists them. Raises `QueryError`.
        """
        params: list[tuple[str, str | int | float | bool | None]] = [
            (name, str(value)) for name, values in parameters.items() for value in values
        ]
        path = f"/tables/{quote(table, safe='')}/{question}"
        return from_arrow(self._sent("GET", path, params=params, headers={"Accept": ARROW}).content)

    def live(
        self,
        question: str,
        table: str,
        *,
        column: str | None = None,
        columns: Names | None = None,
        last: Duration | None = None,
        open: bool = True,
        every: Duration | None = None,
        zone: str | None = None,
        offset: Duration | None = None,
        by: Names | None = None,
        keys: Mapping[str, Any] | None = None,
        k: int | None = None,
        q: float | Sequence[float] | None = None,
        x: float | Sequence[float] | None = None,
        order: str | None = None,
        limit: int | None = None,
        interval: Duration = "1s",
    ) -> Iterator[Answer]:
        """Yield the current answer, with its bounds, and a new one after each change, at most one per
        `interval`.

        Rows are as in JSON: times are text, and so are numbers that aren't finite. It accepts the arguments
        of `ask`. It ends when the server does. Raises `QueryError` and `ValueError` as `ask` does.
        """
        body = _body(
            question,
            column=column,
            columns=columns,
            last=last,
            open=open,
            every=every,
            zone=zone,
            offset=offset,
            by=by,
            k=k,
            q=q,
            x=x,
            order=order,
            limit=limit,
            interval=interval,
        )
        params: list[tuple[str, str | int | float | bool | None]] = [("question", question)]
        params += [(name, _text(one)) for name, value in body.items() for one in _listed(value)]
        for key, value in (keys or {}).items():
            for one in _listed(value):
                params.append(("null", key) if one is None else (f"key.{key}", _text(_json(one))))
        path = f"/tables/{quote(table, safe='')}/live"
        try:
            with self._http.stream("GET", path, params=params, timeout=httpx.Timeout(60.0)) as response:
                if response.is_error:
                    response.read()
                    raise _refused(response)
                name = ""
                for line in response.iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data" and name == "answer":
                        about = json.loads(value)
                        yield Answer.of(about, pl.DataFrame(about["rows"], infer_schema_length=None))
        except httpx.HTTPError as error:
            raise QueryError(0, f"no live answers from {self.url}: {error or type(error).__name__}") from None

    def _sent(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise QueryError(0, f"no answer from {self.url}: {error or type(error).__name__}") from None
        if response.is_error:
            raise _refused(response)
        return response


def _refused(response: httpx.Response) -> QueryError:
    try:
        problem = response.json()
        place = f"line {problem['line']}, column {problem['column']}: " if "line" in problem else ""
        said = f"{problem['title']}: {place}{problem['detail']}"
    except (ValueError, KeyError, TypeError):
        said = f"{response.status_code} {response.reason_phrase}; is this a streamgauge server?"
    return QueryError(response.status_code, said)


def _body(question: str, **given: Any) -> dict[str, Any]:
    if question not in KINDS:
        raise ValueError(f"{question!r} is not a question; there are {', '.join(KINDS)}")
    body = {name: _json(value) for name, value in given.items() if value is not None}
    if body.get("by") == []:
        body["by"] = ["none"]
    if body.get("open") is True:
        del body["open"]
    return body


def _json(value: Any) -> Any:
    """A parameter as JSON."""
    if isinstance(value, Mapping):
        return {key: [_json(one) for one in _listed(wanted)] for key, wanted in value.items()}
    if isinstance(value, timedelta):
        return CalendarLength(0, value // timedelta(microseconds=1)).text
    if isinstance(value, datetime | date | clock):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_json(one) for one in value] if isinstance(value, list | tuple | set) else value


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set) else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

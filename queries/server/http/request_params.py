"""A request's parameters, from its URL or its JSON body, and the requested form of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from ...question.question import BadQuestion
from ...response_format import ARROW, JSON
from .errors import Problem

LARGEST_BODY = 1024 * 1024


async def parameters(request: Request) -> dict[str, list[Any]]:
    """A question's parameters, by name. Raises `BadQuestion`, and `Problem` for a body that is too large."""
    if request.method != "POST":
        values: dict[str, list[Any]] = {}
        for name, value in request.query_params.multi_items():
            values.setdefault(name, []).append(value)
        return values
    return from_json(await _body(request))


async def statement(request: Request) -> str:
    """The SQL text in a body, ``{"sql": "SELECT …"}``. Raises `BadQuestion`, and `Problem`."""
    fields = from_json(await _body(request))
    text = fields.pop("sql", [None])
    if fields or len(text) != 1 or not isinstance(text[0], str):
        raise BadQuestion('the body must be a JSON object with one text, {"sql": "SELECT … FROM table"}')
    return text[0]


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise Problem(
                413,
                "The question is too large",
                f"a body may have {LARGEST_BODY:,} bytes; ask for less at once",
            )
    return body


def from_json(body: bytes) -> dict[str, list[Any]]:
    """The parameters in a JSON object: values or lists of them, keys as ``{"key": {"lang": ["en", null]}}``.

    >>> from_json(b'{"last": "1h", "key": {"lang": ["en", null]}}')
    {'last': ['1h'], 'key.lang': ['en', None]}
    """
    try:
        fields = json.loads(body or b"{}")
    except ValueError as error:
        raise BadQuestion(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadQuestion("the body is nested too deeply; values are plain, or lists of plain ones") from None
    if not isinstance(fields, dict):
        raise BadQuestion('the body must be a JSON object, such as {"last": "1h"}')
    parameters: dict[str, list[Any]] = {}
    for name, value in fields.items():
        if name in ("key", "other-key"):
            if not isinstance(value, dict):
                raise BadQuestion(f'{name} must be an object, such as {{"lang": ["en"]}}')
            for key, wanted in value.items():
                parameters[f"{name}.{key}"] = wanted if isinstance(wanted, list) else [wanted]
        elif value is not None:
            parameters[name] = value if isinstance(value, list) else [value]
    if "item" in parameters:
        parameters.setdefault("as", ["text"])  # in JSON a string is a string, even if it looks like a number
    return parameters


def wanted_form(headers: Mapping[str, str]) -> str:
    """The requested media type: Arrow if it is named, otherwise JSON. Raises `Problem` for others."""
    accept = headers.get("accept", "*/*").lower()
    kinds = [kind.partition(";")[0].strip() for kind in accept.split(",")]
    for kind in kinds:
        if kind == ARROW:
            return ARROW
        if kind in (JSON, "application/*", "*/*", "text/html", ""):
            return JSON
    raise Problem(406, "No answer in that form", f"answers are {JSON} or {ARROW}; accept one of them")

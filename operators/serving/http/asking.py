"""A request's parameters, from its URL or its JSON body, and the form in which it wants the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from ..question import BadQuestion
from .problems import Problem
from .writing import ARROW, JSON

LARGEST_BODY = 1024 * 1024


async def parameters(request: Request) -> dict[str, list[Any]]:
    """What a question is asked with, by name. Raises `BadQuestion`, and `Problem` for a body too large."""
    if request.method != "POST":
        found: dict[str, list[Any]] = {}
        for name, value in request.query_params.multi_items():
            found.setdefault(name, []).append(value)
        return found
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise Problem(
                413,
                "The question is too large",
                f"a body may have {LARGEST_BODY:,} bytes; ask for less at once",
            )
    return from_json(body)


def from_json(body: bytes) -> dict[str, list[Any]]:
    """The parameters in a JSON object: values or lists of them, keys as ``{"key": {"lang": ["en", null]}}``.

    >>> from_json(b'{"last": "1h", "key": {"lang": ["en", null]}}')
    {'last': ['1h'], 'key.lang': ['en', None]}
    """
    try:
        told = json.loads(body or b"{}")
    except ValueError as error:
        raise BadQuestion(f"the body is not JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadQuestion('the body must be a JSON object, such as {"last": "1h"}')
    found: dict[str, list[Any]] = {}
    for name, value in told.items():
        if name in ("key", "other-key"):
            if not isinstance(value, dict):
                raise BadQuestion(f'{name} must be an object, such as {{"lang": ["en"]}}')
            for key, wanted in value.items():
                found[f"{name}.{key}"] = wanted if isinstance(wanted, list) else [wanted]
        elif value is not None:
            found[name] = value if isinstance(value, list) else [value]
    if "item" in found:
        found.setdefault("as", ["text"])  # in JSON a text is a text, even if it looks like a number
    return found


def wanted_form(headers: Mapping[str, str]) -> str:
    """The media type that a request wants: Arrow if it names that, else JSON. Raises `Problem` for others."""
    accept = headers.get("accept", "*/*").lower()
    kinds = [kind.partition(";")[0].strip() for kind in accept.split(",")]
    for kind in kinds:
        if kind == ARROW:
            return ARROW
        if kind in (JSON, "application/*", "*/*", "text/html", ""):
            return JSON
    raise Problem(406, "No answer in that form", f"answers are {JSON} or {ARROW}; accept one of them")

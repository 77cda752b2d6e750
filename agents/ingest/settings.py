"""Make settings of an agent's parts from plain values, with errors that name the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

import msgspec

from ...sketches.core.errors import StreamgaugeError
from .registry import load_kind


class FieldError(StreamgaugeError, ValueError):
    """A field's value can't be used; `path` leads from the part's settings to the field."""

    def __init__(self, path: tuple[str, ...], text: str) -> None:
        super().__init__(text)
        self.path = path


def build(role: str, given: Mapping[str, Any]) -> Any:
    """Make the settings of a part with this role: `type` selects the kind, the rest are its fields.

    Raises `FieldError`.

    >>> build("sources", {"type": "tail", "files": ["/var/log/*.log"]}).start
    'beginning'
    >>> build("sources", {"type": "tail", "fils": []})
    Traceback (most recent call last):
    streamgauge.agents.ingest.settings.FieldError: unknown field 'fils'; did you mean 'files'?
    >>> build("sources", {"type": "tail", "files": 7})
    Traceback (most recent call last):
    streamgauge.agents.ingest.settings.FieldError: files: Expected `array`, got `int`
    """
    if "type" not in given:
        raise FieldError((), 'type is missing; write type = "…"')
    try:
        kind = load_kind(role, given["type"])
    except (ValueError, TypeError) as error:
        raise FieldError(("type",), str(error)) from None
    values = {name: value for name, value in given.items() if name != "type"}
    known = [field.name for field in fields(kind) if field.init]
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"{given['type']} has {', '.join(known)}"
            raise FieldError((name,), f"unknown field {name!r}; {hint}")
    return converted(values, kind)


def converted(values: Mapping[str, Any], kind: Any) -> Any:
    """Convert plain values to an object of this type. Raises `FieldError`."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        steps = tuple(re.findall(r"\w+", path))
        if missing := re.search(r"missing required field `(\w+)`", text):
            raise FieldError(steps, f"{missing[1]} is missing") from None
        named = f"{'.'.join(steps)}: {text}" if steps and not text.startswith(steps[-1]) else text
        # A class's own error begins with the field's name.
        first = re.match(r"(\w+)\b", text)
        at = (*steps, first[1]) if first and first[1] in values else steps
        raise FieldError(at, named) from None

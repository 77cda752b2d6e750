"""A stream's definition as plain JSON with a version, by which consumer groups recognise their stream.

The description has three parts, which serve different purposes:

- what determines the state (the source, keys, windows, each aggregate's sketch with its parameters and
  inputs) decides what can be merged: the `fingerprint` covers only these, and names the table topic;
- what happens to rows (steps, event time) is recorded as text, and compared with the text that a group
  started with (`definition_diff`). Another version of Polars may build an expression differently, so the
  fingerprint excludes it: upgrading Polars must not hide a group's state under another name;
- the question (`answer`, such as the k of a `top_k`) decides nothing here: each query has its own.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from ...sketches.core.lazy import pl

VERSION = 1
"""The version of this form. Descriptions of other versions can't be compared; the error says so."""


def written_by() -> dict[str, str]:
    """The versions that wrote expressions as text; texts are certainly comparable only within a version."""
    return {"polars": pl.__version__, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def fingerprint_of(definition: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that differ for definitions whose state can't be merged.

    `definition` is the result of `Stream.definition`.
    """
    state = {part: definition[part] for part in _STATE}
    state |= {part: definition[part] for part in _OPTIONAL_STATE if part in definition}
    sketches = {name: sketch_of(aggregate) for name, aggregate in definition["aggregates"].items()}
    for sketch in sketches.values():
        sketch.pop("item_kind", None)  # follows from the source's columns
    text = json.dumps({**state, "aggregates": sketches}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_STATE = ("version", "source", "keys", "window", "delay", "max_ahead")
_OPTIONAL_STATE = ("keep_late",)
"""Parts that only some definitions have."""


def sketch_of(aggregate: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an aggregate's definition that determines its sketch, without the question that it answers.

    >>> sketch_of({"aggregate": "top_k", "column": "tag", "params": {"max_size": 4096}, "answer": {"k": 10}})
    {'aggregate': 'top_k', 'column': 'tag', 'params': {'max_size': 4096}}
    """
    return {part: value for part, value in aggregate.items() if part != "answer"}

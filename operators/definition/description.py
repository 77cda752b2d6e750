"""A stream's definition, described: as plain JSON of a stated version, by which groups recognise theirs.

The description has three parts, which decide different things:

- what state is made of (the source, keys, windows, each aggregate's sketch with its parameters and inputs)
  decides what can be merged: the `fingerprint` is of these alone, and names the table topic;
- what happens to rows (steps, event time) is kept in words, and compared with what a group began with
  (`definition_diff`). Polars may build an expression differently in another version, so it is in no
  fingerprint: upgrading Polars must not hide a group's state under another name;
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
"""The version of this form. A description of another one can't be compared, and the error says so."""


def written_by() -> dict[str, str]:
    """What expressions were put into words by: their words are comparable for certain only within one."""
    return {"polars": pl.__version__, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def fingerprint_of(definition: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that differ for definitions whose state can't be merged.

    `definition` is as `Stream.definition` gives it.
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
    """Of an aggregate's definition what its sketch is: without the question that it answers in the end.

    >>> sketch_of({"aggregate": "top_k", "column": "tag", "params": {"max_size": 4096}, "answer": {"k": 10}})
    {'aggregate': 'top_k', 'column': 'tag', 'params': {'max_size': 4096}}
    """
    return {part: value for part, value in aggregate.items() if part != "answer"}

"""What a stream asks, written down: as plain JSON of a stated version, in which groups are known again.

The description has three parts, which decide different things:

- what state is made of (the source, keys, windows, each aggregate's sketch with its parameters and inputs)
  decides what can be merged: the `fingerprint` is of these alone, and names the table topic;
- what happens to rows (steps, event time) is kept in words, and compared with what a group began with
  (`change`). Polars may build an expression differently in another version, so it is in no fingerprint:
  upgrading Polars must not hide a group's state under another name;
- the question (`answer`, such as the k of a `top_k`) decides nothing here: who asks has its own.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

import polars as pl

VERSION = 1
"""Of this form. Whoever finds another one can't compare it, and says so."""


def written_by() -> dict[str, str]:
    """What expressions were put into words by: their words are comparable for certain only within one."""
    return {"polars": pl.__version__, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def fingerprint_of(definition: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that differ for definitions whose state can't be merged.

    `definition` is as `Stream.definition` gives it.
    """
    state = {part: definition[part] for part in _STATE}
    sketches = {name: sketch_of(asked) for name, asked in definition["aggregates"].items()}
    text = json.dumps({**state, "aggregates": sketches}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_STATE = ("version", "source", "keys", "window", "delay", "max_ahead")


def sketch_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Of an aggregate's definition what its sketch is: without the question that is asked of it in the end.

    >>> sketch_of({"aggregate": "top_k", "column": "tag", "params": {"max_size": 4096}, "answer": {"k": 10}})
    {'aggregate': 'top_k', 'column': 'tag', 'params': {'max_size': 4096}}
    """
    return {part: told for part, told in asked.items() if part != "answer"}

"""Whether a stream's state stays valid under a changed definition: only if the change doesn't affect it.

Two parts of a fingerprint don't affect what was counted so far: the `delay`, which decides when windows
close, and source columns that nothing reads. Everything else does, or might: a stream is assumed to read all
columns if one of its steps gets whole rows (a function, a join, deduplication) or if an expression may refer
to any column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .definition_diff import differences

_APART = {"source", "time", "steps"}
_VERBS = {"filter", "with_columns", "select", "explode"}
_ANY_COLUMN = re.compile(r'\ball\(|\bcolumns\(|\bcol\((?!")|\bcol\("[\^*]')


def goes_on(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether state of the definition `before` is valid under `after`.

    >>> import polars as pl
    >>> from .aggregates import count
    >>> from .stream import Stream
    >>> rows = Stream.from_schema({"user": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> more = Stream.from_schema({"user": pl.String, "at": pl.Datetime("us"), "tag": pl.String}, time="at")
    >>> one, two = rows.tumbling("1m").agg(n=count()), more.tumbling("1m", delay="1h").agg(n=count())
    >>> goes_on(one.definition(), two.definition())
    True
    >>> goes_on(one.definition(), rows.tumbling("2m").agg(n=count()).definition())
    False
    """
    return not differences(_state(before), _state(after))


def _state(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parts of a definition that affect its state."""
    source = definition.get("source") or {}
    if definition.get("parts") or definition.get("to") or not isinstance(source.get("columns"), Mapping):
        return definition
    steps = definition.get("steps") or []
    texts = [str(definition.get("time")), *(str(text) for step in steps for text in step[1:])]
    if any(step[0] not in _VERBS for step in steps) or any(map(_ANY_COLUMN.search, texts)):
        return definition
    others = {part: value for part, value in definition.items() if part not in _APART}
    read = "\n".join([*texts, json.dumps(others)])
    columns = {name: kind for name, kind in source["columns"].items() if json.dumps(name) in read}
    same = {**definition, "source": {**source, "columns": columns}, "delay": None}
    same.pop("keep_late", None)  # like the delay, it only affects future rows
    return same

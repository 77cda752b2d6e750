"""What changed between two definitions of a stream, in words.

Whoever goes on from kept state (a consumer group, a checkpoint) compares the definition that made it with
the one at hand, and says the difference before anything is read.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from io import StringIO
from typing import Any

import polars as pl

from .durations import written


class DefinitionChanged(ValueError):
    """Kept state was made by another definition than the one at hand; the message tells what changed."""


_TOLD = ("source", "time", "steps", "keys", "window", "delay", "max_ahead", "aggregates")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is different in `after`, one sentence for each change; none where the definitions are the same.

    Both are as `Stream.definition` gives them, or a part of that: a key missing on both sides is the same.

    >>> from .aggregates import count, distinct
    >>> from .stream import Stream
    >>> rows = Stream.from_batches({"user": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> one = rows.tumbling("1m").agg(posts=count(), users=distinct("user"))
    >>> two = rows.filter(pl.col("user") != "x").tumbling("2m").agg(users=distinct("user", lg_k=10))
    >>> for sentence in differences(one.definition(), two.definition()):
    ...     print(sentence)
    step 1 was added: filter([(col("user")) != ("x")])
    the window changed from tumbling 1m to tumbling 2m
    the aggregate "posts" was removed: count()
    the aggregate "users" changed from distinct("user", lg_k=12) to distinct("user", lg_k=10)
    """
    found = _source(before.get("source") or {}, after.get("source") or {})
    found += _changed("the event time", _expression, before.get("time"), after.get("time"))
    found += _steps(before.get("steps") or [], after.get("steps") or [])
    found += _changed("the grouping", _names, before.get("keys") or [], after.get("keys") or [])
    found += _changed("the window", _window, before.get("window"), after.get("window"))
    found += _changed("the delay", str, before.get("delay"), after.get("delay"))
    found += _changed("max_ahead", _ahead, before.get("max_ahead"), after.get("max_ahead"))
    found += _named("aggregate", _aggregate, before.get("aggregates") or {}, after.get("aggregates") or {})
    for key in dict.fromkeys((*before, *after)):
        if key not in _TOLD:
            found += _changed(key, _plain, before.get(key), after.get(key))
    return found


def _changed(what: str, say: Any, before: Any, after: Any) -> list[str]:
    if before == after:
        return []
    old, new = say(before), say(after)
    if old == new:
        return [f"{what} is written differently: {_plain(before)} became {_plain(after)}"]
    return [f"{what} changed from {old} to {new}"]


def _named(kind: str, say: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Changes of things that have names: removed, renamed, added, changed."""
    found = []
    gone = [name for name in before if name not in after]
    fresh = [name for name in after if name not in before]
    for name in gone:
        same = next((other for other in fresh if after[other] == before[name]), None)
        if same is None:
            found.append(f'the {kind} "{name}" was removed: {say(before[name])}')
        else:
            fresh.remove(same)
            found.append(f'the {kind} "{name}" was renamed to "{same}"')
    found += [f'the {kind} "{name}" was added: {say(after[name])}' for name in fresh]
    for name in before:
        if name in after:
            found += _changed(f'the {kind} "{name}"', say, before[name], after[name])
    return found


def _source(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    found = _named("column", str, before.get("columns") or {}, after.get("columns") or {})
    for key in dict.fromkeys((*before, *after)):
        if key != "columns":
            what = {"topic": "the topic", "value": "the decoder"}.get(key, f"the source's {key}")
            found += _changed(what, _plain, before.get(key), after.get(key))
    return found


def _steps(before: list[Any], after: list[Any]) -> list[str]:
    found = []
    old, new = ([json.dumps(step, sort_keys=True) for step in steps] for steps in (before, after))
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        paired = min(b - a, d - c)
        for i in range(paired):
            found += _changed(f"step {c + i + 1}", _step, before[a + i], after[c + i])
        found += [f"step {at + 1} was removed: {_step(before[at])}" for at in range(a + paired, b)]
        found += [f"step {at + 1} was added: {_step(after[at])}" for at in range(c + paired, d)]
    return found


def _step(step: list[Any]) -> str:
    verb, *expressions = step
    return f"{verb}({', '.join(map(_expression, expressions))})"


def _expression(told: Any) -> str:
    """An expression as Polars prints it; as it was stored where this Polars can't read it."""
    if told is None:
        return "the messages' own timestamps"
    try:
        return str(pl.Expr.deserialize(StringIO(json.dumps(told)), format="json"))
    except Exception:  # Polars raises its own, pyo3's and ValueError for what another version wrote
        return _plain(told)


def _window(told: Any) -> str:
    return "none" if told is None else " ".join(map(str, told.values()))


def _ahead(told: Any) -> str:
    return "no limit" if told is None or told < 0 else written(told)


def _names(told: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in told) or "no keys"


def _aggregate(told: Mapping[str, Any]) -> str:
    column = told.get("column")
    parts = [] if column is None else [f'"{column}"']
    for part in ("inputs", "params", "answer"):
        parts += [f"{name}={value!r}" for name, value in (told.get(part) or {}).items()]
    return f"{told.get('aggregate')}({', '.join(parts)})"


def _plain(told: Any) -> str:
    text = json.dumps(told, sort_keys=True, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"

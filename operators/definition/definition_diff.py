"""What changed between two definitions of a stream, in words.

Before a run resumes from stored state (a consumer group, a checkpoint), it compares the definition that
created the state with its own, and reports any difference before it reads anything.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...sketches.core.errors import StreamgaugeError
from ..windows.durations import duration_text
from .description import sketch_of
from .expression_text import columns_in, skeleton


class DefinitionChanged(StreamgaugeError, ValueError):
    """The stored state belongs to another definition; the message says what changed.

    `stream` is the name of the stream concerned, if several run together.
    """

    stream = ""


_COMPARED = (
    "version",
    "written_by",
    "source",
    "time",
    "steps",
    "keys",
    "window",
    "delay",
    "max_ahead",
    "aggregates",
    "parts",
    "to",
)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Describe each change in `after` in one sentence; an empty list if the definitions are equal.

    Both are results of `Stream.definition`, or the same part of them: a key that both lack is equal.
    Parameters that only affect answers are not compared, nor are texts that only another version of Polars or
    Python may have changed (`rewritten`).

    >>> import polars as pl
    >>> from .aggregates import count, distinct
    >>> from .stream import Stream
    >>> rows = Stream.from_schema({"user": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> one = rows.tumbling("1m").agg(posts=count(), users=distinct("user"))
    >>> two = rows.filter(pl.col("user") != "x").tumbling("2m").agg(users=distinct("user", lg_k=10))
    >>> for sentence in differences(one.definition(), two.definition()):
    ...     print(sentence)
    step 1 was added: filter(col("user") != "x")
    the window changed from tumbling 1m to tumbling 2m
    the aggregate "posts" was removed: count()
    the aggregate "users" changed from distinct("user", lg_k=12) to distinct("user", lg_k=10)
    """
    if before.get("version") != after.get("version"):
        return [_of_another_form(before.get("version"), after.get("version"))]
    after, _ = _reconciled(before, after)
    changes = _source(before.get("source") or {}, after.get("source") or {})
    changes += _parts(before, after, differences)
    changes += _changed("the event time", _time, before.get("time"), after.get("time"))
    changes += _steps(before.get("steps") or [], after.get("steps") or [])
    changes += _keys(before.get("keys") or [], after.get("keys") or [])
    changes += _changed("the window", _window, before.get("window"), after.get("window"))
    changes += _changed("the delay", str, before.get("delay"), after.get("delay"))
    changes += _changed("max_ahead", _ahead, before.get("max_ahead"), after.get("max_ahead"))
    changes += _named("aggregate", aggregate_text, *_sketches(before, after))
    changes += _changed("what is sent on", _sent, before.get("to"), after.get("to"))
    for key in dict.fromkeys((*before, *after)):
        if key not in _COMPARED:
            changes += _changed(key, _plain, before.get(key), after.get(key))
    return changes


def rewritten(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Expressions whose text differs, but which may be equal: another Polars or Python wrote the text.

    There is one sentence for each. Such expressions name the same columns, and differ in more than constants;
    `differences` reports the changes that another version can't explain.

    >>> before = {"time": 'col("at").cast(datetime[ms])', "written_by": {"polars": "1.36.1"}}
    >>> after = {"time": '(col("at") * 1000).cast(datetime[us])', "written_by": {"polars": "2.1.0"}}
    >>> differences(before, after)
    []
    >>> print(rewritten(before, after)[0])
    the event time was col("at").cast(datetime[ms]), and is (col("at") * 1000).cast(datetime[us])
    """
    if before.get("version") != after.get("version"):
        return []
    return _reconciled(before, after)[1] + _parts(before, after, rewritten)


def _parts(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    compare: Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]],
) -> list[str]:
    """What `compare` reports for each merged stream that both sides have, matched by what they read."""
    shared = ("version", "written_by")
    theirs, own = (
        {
            json.dumps(part["source"].get("topic")): {
                **{name: definition.get(name) for name in shared},
                **part,
            }
            for part in definition.get("parts") or ()
        }
        for definition in (before, after)
    )
    return [
        f"in the stream of {topic}, {sentence}"
        for topic in theirs
        if topic in own
        for sentence in compare(theirs[topic], own[topic])
    ]


def _reconciled(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """`after` with the texts of `before` where only the wording may differ, and a sentence for each."""
    old, new = before.get("written_by"), after.get("written_by")
    if old == new or old is None or new is None:
        return after, []
    code = old.get("python") == new.get("python")
    changes: list[str] = []
    time, steps = after.get("time"), list(after.get("steps") or [])
    if _perhaps(before.get("time"), time, code):
        changes.append(f"the event time was {before['time']}, and is {time}")
        time = before["time"]
    earlier = list(before.get("steps") or [])
    if [(step[0], len(step)) for step in earlier] == [(step[0], len(step)) for step in steps]:
        for at, (one, other) in enumerate(zip(earlier, steps)):
            pairs = [(a, b) for a, b in zip(one[1:], other[1:]) if _perhaps(a, b, code)]
            changes += [f"step {at + 1} had {a}, and has {b}" for a, b in pairs]
            words = {b: a for a, b in pairs}
            steps[at] = [other[0], *(words.get(text, text) for text in other[1:])]
    return {**after, "time": time, "steps": steps}, changes


def _perhaps(before: str | None, after: str | None, code: bool) -> bool:
    """Whether two texts may describe one expression; `code`: digests of functions are comparable."""
    if before is None or after is None or before == after or columns_in(before) != columns_in(after):
        return False
    if not code:
        before, after = _DIGEST.sub("", before), _DIGEST.sub("", after)
    return before == after or skeleton(before) != skeleton(after)


_DIGEST = re.compile(r" #[0-9a-f]{8}\b")


def _of_another_form(before: object, after: object) -> str:
    return (
        f"it was written in format version {before!r}, by another version of streamgauge, and this one can "
        f"only compare format version {after!r}; that version can continue with it"
    )


def _sketches(*both: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sketches of both, without an aggregate's item kind unless both record it; in streams it follows
    from the source's columns."""
    described = [
        {name: sketch_of(aggregate) for name, aggregate in (definition.get("aggregates") or {}).items()}
        for definition in both
    ]
    for name in set.union(*map(set, described)):
        those = [sketches[name] for sketches in described if name in sketches]
        if "source" in both[0] or not all("item_kind" in one for one in those):
            for one in those:
                one.pop("item_kind", None)
    return described


def _changed(what: str, say: Any, before: Any, after: Any) -> list[str]:
    return [] if before == after else [f"{what} changed from {say(before)} to {say(after)}"]


def _named(kind: str, say: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Changes of named things: removed, renamed, added, changed."""
    changes = []
    gone = [name for name in before if name not in after]
    fresh = [name for name in after if name not in before]
    for name in gone:
        same = next((other for other in fresh if after[other] == before[name]), None)
        if same is None:
            changes.append(f'the {kind} "{name}" was removed: {say(before[name])}')
        else:
            fresh.remove(same)
            changes.append(f'the {kind} "{name}" was renamed to "{same}"')
    changes += [f'the {kind} "{name}" was added: {say(after[name])}' for name in fresh]
    for name in before:
        if name in after:
            changes += _changed(f'the {kind} "{name}"', say, before[name], after[name])
    return changes


def _source(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    if "joined" in before or "joined" in after:
        return _joined(before, after)
    if "merged" in before or "merged" in after:
        one, two = (
            {json.dumps(part.get("topic")): part for part in source.get("merged", [source])}
            for source in (before, after)
        )
        changes = [f"the stream of {topic} was read before" for topic in sorted(one.keys() - two.keys())]
        changes += [f"the stream of {topic} is merged now" for topic in sorted(two.keys() - one.keys())]
        return changes
    changes = _named("column", str, before.get("columns") or {}, after.get("columns") or {})
    for key in dict.fromkeys((*before, *after)):
        if key != "columns":
            names = {"topic": "the topic", "value": "the decoder", "key": "the decoder of keys"}
            what = names.get(key, f"the source's {key}")
            say = _decoder if key in ("value", "key") else _plain
            changes += _changed(what, say, before.get(key), after.get(key))
    return changes


def _joined(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    one, two = (
        " and ".join(
            _plain(part.get("topic")) for part in source.get("joined") or source.get("merged") or [source]
        )
        for source in (before, after)
    )
    if "joined" not in after:
        return [f"the streams of {one} were joined before, and now {two} is read"]
    if "joined" not in before:
        return [f"the streams of {two} are joined now, and before {one} was read"]
    changes = _changed("the joined streams", str, one, two)
    for key in ("on", "within", "how", "suffix"):
        changes += _changed(f"{key}= of the join", _plain, before.get(key), after.get(key))
    return changes


def _steps(before: list[Any], after: list[Any]) -> list[str]:
    changes = []
    old, new = ([json.dumps(step, sort_keys=True) for step in steps] for steps in (before, after))
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        paired = min(b - a, d - c)
        for i in range(paired):
            changes += _changed(f"step {c + i + 1}", _step, before[a + i], after[c + i])
        changes += [f"step {at + 1} was removed: {_step(before[at])}" for at in range(a + paired, b)]
        changes += [f"step {at + 1} was added: {_step(after[at])}" for at in range(c + paired, d)]
    return changes


def _step(step: list[Any]) -> str:
    verb, *expressions = step
    return f"{verb}({', '.join(expressions)})"


def _time(text: str | None) -> str:
    return "the messages' own timestamps" if text is None else text


def _keys(before: list[Any], after: list[Any]) -> list[str]:
    """Keys are names, or pairs of name and type; types are only mentioned if the names are the same."""
    names = [[key if isinstance(key, str) else key[0] for key in keys] for keys in (before, after)]
    if names[0] != names[1]:
        return _changed("the grouping", _names, *names)
    pairs = [(a, b) for a, b in zip(before, after) if a != b]
    return [f'the type of the key "{a[0]}" changed from {a[1]} to {b[1]}' for a, b in pairs]


def _decoder(definition: Mapping[str, Any] | None) -> str:
    if definition is None:
        return "none"
    given = ", ".join(f"{name}={_plain(value)}" for name, value in definition.items() if name != "decoder")
    return f"{definition.get('decoder')}({given})"


def _window(definition: Any) -> str:
    if definition is None:
        return "none"
    words = " ".join(map(str, definition.values()))
    # For windows of a DataFrame, the name of their length shows their kind.
    return f"sessions of {words}" if "session" in definition else words


def _sent(definition: Any) -> str:
    if definition is None:
        return "nothing"
    key = ", ".join(definition["key"]) or "none"
    return f"{_plain(definition['value'])} to {definition['topic']} with the key {key}"


def _ahead(length_us: Any) -> str:
    return "no limit" if length_us is None or length_us < 0 else duration_text(length_us)


def _names(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "no keys"


def aggregate_text(definition: Mapping[str, Any]) -> str:
    """An aggregate's definition, written as Python.

    >>> aggregate_text({"aggregate": "distinct", "column": "user", "params": {"lg_k": 12}})
    'distinct("user", lg_k=12)'
    """
    column = definition.get("column")
    parts = [] if column is None else [f'"{column}"']
    for part in ("inputs", "params"):
        parts += [f"{name}={value!r}" for name, value in (definition.get(part) or {}).items()]
    of = f" of {definition['item_kind']} items" if "item_kind" in definition else ""
    return f"{definition.get('aggregate')}({', '.join(parts)}){of}"


def _plain(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"

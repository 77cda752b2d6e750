"""ksqlDB's own query translation tests as statements here: how many give its rows, and why the others don't.

    git clone --depth 1 https://github.com/confluentinc/ksql /tmp/ksql
    python bench/ksqldb_tests.py /tmp/ksql/ksqldb-functional-tests/src/test/resources/query-validation-tests

Statements run as they are, in memory. ksqlDB writes each change of a window, and we write the window as it
closes: the last change of each window is what must come. No difference are the names of unnamed columns
(KSQL_COL_0), the place of a key, in the key or in the value, the case of fields of JSON, messages without a
value, windows that begin before 1970, the delimiter of values, and NaN, which JSON does not have.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge.queries.sql.plan.logical_plan import LogicalPlan
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import ReceivedMessage, RowReader, topics_of
from streamgauge.queries.sql.run.session import SqlSession

_FORMATS = ("JSON", "DELIMITED")
_JAVA = re.compile(
    r"\b(test_udf|bad_udf|var_arg|obj_col|generic_var|middle_var|multi_arg|toy|udaf)\w*\s*\(", re.I
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START, _KEY, _PLACES = "window_start", " key", " places"
_OF_SERVER = ("ksql.persistence.wrap.single.values", "ksql.output.topic.name.prefix")
"""Properties of a ksqlDB server that change rows."""
_DECISIONS = {
    r"array-set-functions: array_concat": "ARRAY_CONCAT with NULL is NULL, as in Flink and Spark",
    r"binary-comparison: (array|struct|map) equality|math: trunc - integer|group-by: multiple expressions -"
    r"|joins: stream-table val-to-key - keyless": (
        "a message with 2.0, 1.7 or '2' in an INT column is refused, and counted"
    ),
    r"(date|time|timestamp): .* in/out|date(add|sub): |convert-tz: convert timezones defined by name"
    r"|timestamp-to-string: |timestampformat: timestamp column of TIMESTAMP|unix-timestamp: convert": (
        "a message with a number in a TIMESTAMP, DATE or TIME column is refused, and counted"
    ),
    r"windows: out of order - no grace period": "GRACE PERIOD is 10 seconds by default, not a day",
    r"windows: out of order - explicit grace": "one row that is far ahead of all others closes no window",
    r"joins: (full join|stream[ -]stream (left|outer|value|key)|unqualified)"
    r"|multi-joins: stream-stream-table": (
        "a row without a partner comes once WITHIN is over, not at once and then again"
    ),
    r"project-filter: (Json Map|Null row) filter|simple-struct: .* read struct as json string": (
        "a message with a number, true or an object in a VARCHAR column is refused, and counted"
    ),
    r"arrayjoin: join flat arrays .* custom delimiters": "ARRAY_JOIN leaves NULL out, as in Flink and Spark",
    r"delimited: (INT|BIGINT) - key": "a key in quotes is no number: the message is refused, and counted",
    r"null: null equals": "= with NULL is NULL",
    r"null: coalesce - with parse_date": "text after the end of the pattern makes it no date",
    r"multi-joins: stream-table-table - qualified": "t.* has the columns' own names, without t_ before them",
    r"partition-by: only key column - select star - with join": "* has no ROWTIME, ROWPARTITION, ROWOFFSET",
    r"string: LCASE, UCASE, TRIM": "TRIM removes spaces only, as the standard says",
    r"suppress: ": "EMIT FINAL gives each closed window, also the first, and waits 10 seconds by default",
    r"window-bounds: table session": "a session ends the gap behind its last row, as in Flink and Spark",
    r"timestamp-extractor: s(ink|ource big)|timestampformat: override output": "times before 1970 are times",
}
"""Where we give other rows on purpose, as the page of SQL says: patterns of tests, each with the reason."""


@dataclass(frozen=True)
class Outcome:
    """The result of a test, and why: ``rows`` that are right, ``refused``, other rows by ``decision``,
    ``wrong`` ones, or ``failed``.
    """

    name: str
    kind: str
    why: str = ""


def tests_in(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tests that give rows, each in one of our formats, without functions of Java."""
    for file in sorted(folder.glob("*.json")):
        text = re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.M)
        text = re.sub(r",(\s*[\]}])", r"\1", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        try:
            tests = json.loads(text)["tests"]
        except ValueError as error:
            print(f"{file.name} can't be read: {error}", file=sys.stderr)
            continue
        for test in tests:
            if not test.get("outputs") or not test.get("inputs") or "expectedException" in test:
                continue
            formats = test.get("format", ["JSON"])
            fit = next((one for one in _FORMATS if one in formats), None)
            statements = " ".join(test["statements"])
            if fit is None or test.get("enabled") is False or _JAVA.search(statements):
                continue
            yield f"{file.stem}: {test['name']}", json.loads(json.dumps(test).replace("{FORMAT}", fit))


def outcome_of(name: str, test: Mapping[str, Any]) -> Outcome:
    """Run one test."""
    if any(name in _OF_SERVER for name in test.get("properties") or ()):
        return Outcome(name, "refused", "a property of ksqlDB's server")
    engine = _InOrder(final="EMIT FINAL" in " ".join(test["statements"]).upper())
    session = SqlSession(engine, "localhost:9092")
    for result in session.run("\n".join(test["statements"])):
        if result.error is not None:
            return Outcome(name, "refused", result.error.message)
    for number, message in enumerate(test["inputs"]):
        at = message.get("timestamp", number)
        columns = next(
            (one.columns for one in session.catalog.relations.values() if one.topic == message["topic"]), {}
        )
        key, value = _bytes(message.get("key")), _bytes(_declared(message.get("value"), columns))
        engine.arrive(ReceivedMessage(message["topic"], 0, key, value, at))
    given = {message["topic"] for message in test["inputs"]}
    for topic in dict.fromkeys(message["topic"] for message in test["outputs"]):
        if topic in given:
            continue
        known = {written.lower(): written for written, _ in engine.topics()}
        try:
            came = engine.content(known.get(topic.lower(), topic))
        except Exception as error:
            return Outcome(name, "failed", str(error).split("\n")[0])
        expected = _final([message for message in test["outputs"] if message["topic"] == topic])
        rows = [json.loads(one.value or b"null") for one in came]
        if why := _difference(expected, rows, [one.key for one in came]):
            reason = next((why for pattern, why in _DECISIONS.items() if re.search(pattern, name)), "")
            return Outcome(name, "decision", reason) if reason else Outcome(name, "wrong", why)
    return Outcome(name, "rows")


class _InOrder(Memory):
    """Messages arrive one at a time in the order of the test, so those of tables and streams alternate.

    With EMIT FINAL (`final`) windows that no later message closes stay open.
    """

    def __init__(self, final: bool) -> None:
        super().__init__()
        self._final = final
        self._arrived: list[ReceivedMessage] = []

    def arrive(self, message: ReceivedMessage) -> None:
        self._arrived.append(message)
        self._inserted.setdefault(message.topic, []).append(message)

    def _read(self, plan: LogicalPlan, sinks: Sequence[Any] = ()) -> RowReader:
        reader = RowReader(plan, sinks=sinks)
        known = {topic: self.content(topic) for topic in (*reader.lookups, *topics_of(plan))}
        tables, streams = set(reader.lookups), set(topics_of(plan))
        place = {id(message): number for number, message in enumerate(self._arrived)}
        messages = [message for topic in known for message in known[topic]]
        for message in sorted(messages, key=lambda one: place.get(id(one), len(place))):
            if message.topic in tables:
                reader.feed_lookup([message])
            if message.topic in streams:
                reader.feed([message])
        if not self._final:
            reader.finish()
        return reader


def _declared(value: Any, kind: Any) -> Any:
    """A value with its fields' names in the case in which they are declared."""
    if isinstance(kind, pl.Struct):
        kind = {one.name: one.dtype for one in kind.fields}
    if isinstance(value, Mapping) and isinstance(kind, Mapping):
        names = {name.lower(): name for name in kind}
        return {
            names.get(name.lower(), name): _declared(one, kind.get(names.get(name.lower(), "")))
            for name, one in value.items()
        }
    if isinstance(value, list) and isinstance(kind, pl.List):
        return [_declared(one, kind.inner) for one in value]
    return value


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def _final(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The last change of each window; of rows, all."""
    if not any("window" in message for message in messages):
        return [message for message in messages if message.get("value") is not None]
    last = {}
    for message in messages:
        window = message.get("window", {})
        last[json.dumps(message.get("key")), window.get("start"), window.get("end")] = message
    return [message for message in last.values() if message.get("value") is not None]


def _difference(expected: Sequence[Mapping[str, Any]], rows: Sequence[Any], keys: Sequence[Any]) -> str:
    """What differs; empty for the same rows."""
    windows = any("window" in message for message in expected)
    ours = [_flat(row, key) for row, key in zip(rows, keys)]
    ours = [row for row in ours if not windows or row.get(_START, 0) >= 0]
    theirs = [_expected(message) for message in expected]
    if len(ours) != len(theirs):
        return f"{len(theirs)} rows expected, got {len(ours)}"
    if windows:
        ours, theirs = sorted(ours, key=_order), sorted(theirs, key=_order)
    for mine, their in zip(ours, theirs):
        if why := _row_difference(their, mine):
            return why
    return ""


def _order(row: Mapping[str, Any]) -> str:
    return f"{row.get(_START)} {row.get(_KEY)}"


def _flat(row: Any, key: bytes | None) -> dict[str, Any]:
    flat = {name.lower(): value for name, value in (row or {}).items()}
    if isinstance(flat.get(_START), str):
        flat[_START] = int(
            (datetime.fromisoformat(flat[_START]).replace(tzinfo=UTC) - _EPOCH).total_seconds() * 1000
        )
    flat[_KEY] = None if key is None else key.decode()
    return flat


def _expected(message: Mapping[str, Any]) -> dict[str, Any]:
    value = message.get("value")
    if isinstance(value, str):
        sign = next((sign for sign in "|\t" if sign in value), "," if "," in value else " ")
        if value.startswith('"'):
            sign = ","
        row: dict[str, Any] = {_PLACES: next(csv.reader([value], delimiter=sign), [])}
    elif isinstance(value, Mapping):
        row = {name.lower(): one for name, one in value.items()}
    else:
        row = {_PLACES: [value]}
    if (window := message.get("window")) is not None:
        row[_START] = window["start"]
    key = message.get("key")
    row[_KEY] = None if key is None else key if isinstance(key, str) else json.dumps(key)
    return row


def _row_difference(their: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    unnamed = [
        name for name in mine if name not in their and name not in ("window_start", "window_end", _KEY)
    ]
    if _PLACES in their:
        # What is in their key is a column of ours, and comes first or not at all.
        values = [mine[name] for name in unnamed]
        places = their[_PLACES]
        if len(values) > len(places):
            # PARTITION BY: one of the columns is their key, and the old key follows the others.
            own = next((name for name in unnamed if _same(mine[_KEY], mine[name])), "")
            rest = [mine[name] for name in unnamed if name != own]
            if sorted(map(str, rest)) == sorted(map(str, places)):
                return ""
        values = values[len(values) - len(places) :]
        pairs = list(zip(places, values))
        if len(values) != len(places) or not all(_same(one, other) for one, other in pairs):
            return f"{places} expected, got {values}"
        return ""
    for name, value in their.items():
        if name in (_KEY, _PLACES):
            continue
        prefix, _, rest = name.partition("_")
        if value is None and name not in mine:
            continue  # a column that isn't there is NULL
        if name in mine:
            got = mine[name]
        elif f"{rest}_{prefix}" in mine or rest in mine:
            # A column of a join: l_a there, and a or a_l here.
            got = mine.get(f"{rest}_{prefix}", mine.get(rest))
        elif re.fullmatch(r"\w+_\d", name) and name[:-2] in mine:
            got = mine[name[:-2]]  # of an unnamed expression, whose name another column has
        elif re.fullmatch(r"ksql_col_\d+", name):
            # Ours is called by its text; what comes before is the key.
            columns = [one for one in their if re.fullmatch(r"ksql_col_\d+", one) and one not in mine]
            place = len(unnamed) - len(columns) + columns.index(name)
            if place < 0:
                return f"{name} is missing"
            got = mine[unnamed[place]]
            if not _same(value, got):
                got = mine[unnamed[columns.index(name)]]  # the key comes last, by a *
        else:
            return f"{name} is missing"
        if not _same(value, got):
            return f"{name} is {value!r}, got {got!r}"
    return ""


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, also as texts, as numbers and as times."""
    if one == other or (other is None and one in (None, "", "NaN", "Infinity", "-Infinity")):
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        mine = {name.lower(): value for name, value in other.items()}
        return all(_same(value, mine.get(name.lower())) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(other, bool):
        return str(one).lower() == str(other).lower()
    if isinstance(other, str) and re.match(r"\d{4}-", other) and re.fullmatch(r"-?\d+", str(one)):
        one = int(one)
        moment = datetime.fromisoformat(other).replace(tzinfo=UTC)
        return one in ((moment - _EPOCH).total_seconds() * 1000, (moment - _EPOCH).days)
    try:
        return abs(float(one) - float(other)) <= 1e-9 * max(1, abs(float(one)))
    except (TypeError, ValueError):
        return str(one) == str(other)


def main() -> None:
    """Run the tests of a folder, and count the result of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="query-validation-tests of ksqlDB's repository")
    parser.add_argument("--only", default="", help="pattern of the names of files")
    parser.add_argument("--verbose", action="store_true", help="print each test that isn't right")
    given = parser.parse_args()
    outcomes = []
    for name, test in tests_in(given.folder):
        if not re.search(given.only, name.partition(":")[0]):
            continue
        try:
            outcome = outcome_of(name, test)
        except Exception as error:
            outcome = Outcome(name, "failed", f"{type(error).__name__}: {error}".split("\n")[0])
        outcomes.append(outcome)
        if given.verbose and outcome.kind != "rows":
            print(f"{outcome.kind:8}{outcome.name}: {outcome.why}", flush=True)
    kinds = collections.Counter(one.kind for one in outcomes)
    print(f"{kinds['rows']} of {len(outcomes)} give ksqlDB's rows;", end=" ")
    print(f"{kinds['refused']} are refused, {kinds['decision']} give others on purpose,", end=" ")
    print(f"{kinds['wrong']} give wrong ones, {kinds['failed']} fail")
    decisions = collections.Counter(one.why for one in outcomes if one.kind == "decision")
    for why, number in decisions.most_common():
        print(f"{number:5} on purpose: {why}")
    refusals = collections.Counter(
        re.sub(r"\b[A-Z][A-Z0-9_]{3,}\b", "…", one.why)[:90] for one in outcomes if one.kind == "refused"
    )
    for why, number in refusals.most_common(25):
        print(f"{number:5} {why}")


if __name__ == "__main__":
    main()

"""What holds for every kind of rule: its alerts depend on rows and times alone.

Not on how windows are cut into batches, on restarts, or on which evaluator sees them; and if a rule says that
a key's rows are enough for its alerts (`Rule.together`), not on the other keys either. Of readings, they are
those that plain Python gives (`naive`).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.evaluation.evaluator import Evaluator, RowByRow
from streamgauge.operators.rules.evaluation.evaluators import evaluator_of
from streamgauge.operators.rules.packed_bytes import unpacked
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import Rule
from streamgauge.operators.rules.window_rows import Window, WindowBatch

from .naive import naive

MINUTE = 60_000_000
START = 1_767_225_600_000_000
DAY = 24 * 60 * MINUTE
Windows = dict[Window, list[Row]]


def windows_of(seed: int, minutes: int, readings: bool) -> Windows:
    """Rows of some keys in windows of a minute: levels, jumps, counters, silences, and a key that goes."""
    dice = random.Random(seed)
    keys = "abcdefgh"
    level = {key: 20.0 + 10 * number for number, key in enumerate(keys)}
    counter = dict.fromkeys(keys, 2**32 - 5_000)
    result: Windows = {}
    for minute in range(minutes):
        start = START + minute * MINUTE
        rows = []
        for key in keys:
            silent = minute % 40 > 30 and key in "bc"
            gone = key == "h" and minute > minutes // 2
            if silent or gone or dice.random() < 0.15:
                continue
            if dice.random() < 0.1:
                level[key] += dice.choice([-40, 40])
            counter[key] = (counter[key] + dice.randrange(300)) % 2**32
            times = sorted(dice.sample(range(60), 3)) if readings else [60]
            for second in times:
                at = start + second * 1_000_000
                value = round(level[key] + dice.random(), 2)
                answers = {"v": value, "n": dice.randrange(1, 60), "all": 60, "octets": counter[key]}
                rows.append(Row({"k": key}, at if readings else start, at, answers))
        if rows:
            result[start + MINUTE, start] = sorted(rows, key=lambda row: (row.at_us, row.key["k"]))
    return result


def alerts_of(
    rule: Rule,
    windows: Windows,
    readings: bool,
    sizes: Callable[[], int],
    restarts: bool = False,
    by_rows: bool = False,
    ends: Sequence[Window] = (),
) -> tuple[list[Alert], Evaluator]:
    """What a rule reports, in batches of so many windows; `ends` are those that others have rows in, too."""

    def fresh() -> Evaluator:
        return RowByRow(rule) if by_rows else evaluator_of(rule, readings)

    evaluator, step = fresh(), 0 if readings else MINUTE
    every, alerts = sorted({*windows, *ends}), list[Alert]()
    while every:
        some, every = every[: (size := sizes())], every[size:]
        batch = {window: windows[window] for window in some if window in windows}
        if batch:
            alerts += [one.alert for one in evaluator.evaluate(WindowBatch(batch), step, True)]
        if some[-1] not in batch:
            alerts += evaluator.advance(some[-1][0], step)
        if restarts:
            state = json.loads(json.dumps(evaluator.state()))
            evaluator = fresh()
            evaluator.restore(state)
    return alerts, evaluator


def check(rule: Rule, readings: bool, seed: int, minutes: int = 160) -> list[Alert]:
    """Check the law for a rule; returns its alerts, in their order."""
    dice, windows = random.Random(seed), windows_of(seed, minutes, readings)
    wanted, _ = alerts_of(rule, windows, readings, lambda: 1, by_rows=True)
    if readings:
        check_naive(rule, windows, wanted)
    cuts: list[tuple[dict[str, Any], Callable[[], int]]] = [
        ({}, lambda: 10_000),
        ({}, lambda: dice.randrange(1, 12)),
        ({"restarts": True}, lambda: 1),
        ({"restarts": True, "by_rows": True}, lambda: dice.randrange(1, 12)),
    ]
    for options, sizes in cuts:
        alerts_said, _ = alerts_of(rule, windows, readings, sizes, **options)
        assert [str(one) for one in alerts_said] == [str(one) for one in wanted], options
    if rule.together is None:
        parts: list[Windows] = [{}, {}, {}]
        for window, rows in windows.items():
            for row in rows:
                parts[ord(row.key["k"]) % 3].setdefault(window, []).append(row)
        split: Counter[str] = Counter()
        for part in parts:
            alerts_said, _ = alerts_of(rule, part, readings, lambda: 1, ends=list(windows))
            split.update(map(str, alerts_said))
        assert split == Counter(map(str, wanted))
    return wanted


def check_naive(rule: Rule, windows: Windows, alerts: Sequence[Alert]) -> None:
    """Check alerts against plain Python, for kinds that it has."""
    rows = [row for window in sorted(windows) for row in windows[window]]
    for key in sorted({row.key["k"] for row in rows}):
        wanted = naive(rule, [row for row in rows if row.key["k"] == key], max(windows)[0])
        if wanted is not None:
            assert [(one.state, one.at_us) for one in alerts if one.plain_key == key] == wanted, key


def remembered(rule: Rule, readings: bool, keys: int) -> tuple[int, int]:
    """The bytes of state after rows of many keys that never come again, and 60 days later."""
    rows: Windows = {}
    for number in range(keys):
        window = START + (number // 50 + 1) * MINUTE, START + number // 50 * MINUTE
        at = window[0]
        row = Row(
            {"k": f"k{number}"},
            at if readings else window[1],
            at,
            {"v": 1.0 + number % 3, "n": 1, "all": 60, "octets": number},
        )
        rows.setdefault(window, []).append(row)
    _, evaluator = alerts_of(rule, rows, readings, lambda: 10)
    before, last = _size(evaluator.state()), max(rows)[0]
    for day in accumulate([DAY] * 60):
        evaluator.advance(last + day, 0 if readings else MINUTE)
    return before, _size(evaluator.state())


def _size(state: dict[str, Any]) -> int:
    """The bytes of a state whose keys are not compressed."""
    if isinstance(packed := state.get("keys"), str):
        state = state | {"keys": json.loads(unpacked(packed))}
    return len(json.dumps(state))

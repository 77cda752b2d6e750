"""The numbers of a node's messages, against a count in plain Python."""

from __future__ import annotations

import json
import random

from streamgauge.apps.iot.sparkplug.sequence import SequenceGap
from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.row import Row

RULE = SequenceGap("sequence", kind="sequence")


def row(at: int, seq: int | None, birth: bool = False, node: str = "n") -> Row:
    return Row({"node": node, "unit": node, "seq": seq}, at, at, {"birth": 1 if birth else None})


def alerts_of(rows: list[Row], cut: int = 10) -> list[Alert]:
    """The alerts of rows, in windows of so many ms, with the state written down between them."""
    state, collected = RULE.begin(), []
    for window in range(max(one.at_us for one in rows) // cut + 1):
        inside = [one for one in rows if one.at_us // cut == window]
        collected += RULE.window(state, inside, window * cut, window * cut + cut, 0)
        state = json.loads(json.dumps(state))
    return collected


def test_a_stream_without_loss_says_nothing_around_the_circle_and_through_births() -> None:
    rows, at, seq = [], 0, 0
    dice = random.Random(5)
    for number in range(2_000):
        birth = number in (0, 700, 701, 1_300)
        seq = 0 if birth else (seq + 1) % 256
        at += dice.choice([0, 0, 1, 2]) if not birth else 1
        rows.append(row(at, seq, birth))
    dice.shuffle(rows)  # within a millisecond the number decides
    assert alerts_of(rows) == []


def test_what_is_missing_is_reported_with_how_many() -> None:
    rows = [row(at, at % 256) for at in range(600) if at not in (100, 101, 102, 255, 400)]
    result = alerts_of(rows)
    assert [(alert.at_us, alert.why.split(":")[0]) for alert in result] == [
        (103, "number 103 came where 100 was due"),
        (256, "number 0 came where 255 was due"),
        (401, "number 145 came where 144 was due"),
    ]
    assert "3 missing before it" in result[0].why and result[0].plain_key == "n"


def test_what_comes_again_or_late_is_reported_and_does_not_move_the_count() -> None:
    rows = [
        row(1, 5),
        row(2, 6),
        row(3, 6),
        row(4, 8),
        row(5, 7),
        row(6, 9),
        row(7, None),
        row(8, 1, node="m"),
    ]
    (alert,) = alerts_of(rows, cut=100)
    assert alert.value == 3 and alert.at_us == 3
    assert alert.why == "number 6 came again or late, where 7 was due; 3 such among 6 messages"


def test_the_count_goes_on_behind_a_gap_of_more_than_half_the_circle() -> None:
    rows = [row(at, at % 256) for at in range(600) if not 100 <= at < 270]
    (alert,) = alerts_of(rows)
    assert (alert.at_us, alert.why) == (270, "number 14 came again or late, where 100 was due")


def test_a_birth_is_distinguished_from_what_else_is_of_its_millisecond() -> None:
    assert alerts_of([row(1, 7), row(2, 0, birth=True), row(2, 8), row(3, 1)]) == []
    assert alerts_of([row(1, 7), row(2, 0, birth=True), row(2, 1), row(2, 2), row(2, 8), row(3, 3)]) == []
    (alert,) = alerts_of([row(2, 0, birth=True), row(2, 1), row(3, 4)])
    assert alert.why == "number 4 came where 2 was due: 2 missing before it"

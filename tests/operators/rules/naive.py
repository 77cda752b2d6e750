"""Kinds of rules in plain Python, over the whole list of a key's readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamgauge.operators.rules.kinds.rate import growth
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import LimitRule, Rule
from streamgauge.rules import Absence, Change, Flatline, Rate, Ratio, RollingSum, Threshold

from .plain import hysteresis

Scores = Iterator[tuple[int, float]]


def naive(rule: Rule, rows: Sequence[Row], end_us: int) -> list[tuple[str, int]] | None:
    """States and times of what a rule reports of a key's readings; None for a kind that isn't here."""
    if isinstance(rule, Absence):
        return (
            None if rule.forget_us else list(_silences([row.at_us for row in rows], rule.longer_us, end_us))
        )
    if not isinstance(rule, LimitRule) or rule.absent is not None or type(rule) not in _SCORES:
        return None
    if isinstance(rule, Change) and rule.against != "last":
        return None
    past = list(_SCORES[type(rule)](rule, rows))
    # Every limit as one that values must be above, and that they are back from at or below another one.
    sign = 1 if rule.limit.upwards else -1
    tiny = 1e-9 if rule.limit.way in ("at_least", "at_most") else 0.0
    above = sign * rule.limit.at - tiny
    clear = above if rule.clear is None else sign * rule.clear
    values = [(at, sign * score) for at, score in past]
    holds = rule.holds
    if not rule.every:
        return (
            [
                (state, int(at))
                for state, at in hysteresis(
                    values, above, clear, holds.hold_us, holds.release_us, holds.cooldown_us, end_us
                )
            ]
            if values
            else []
        )
    fired: list[int] = []
    for at, value in values:
        if value > above and (not fired or at >= fired[-1] + holds.cooldown_us):
            fired.append(at)
    return [("fired", at) for at in fired]


def _values(rule: LimitRule, rows: Sequence[Row]) -> Scores:
    return ((row.at_us, row.answers[rule.value]) for row in rows)


def _shares(rule: Ratio, rows: Sequence[Row]) -> Scores:
    enough = [row for row in rows if row.answers[rule.to] >= rule.least]
    return ((row.at_us, row.answers[rule.value] / row.answers[rule.to]) for row in enough)


def _sums(rule: RollingSum, rows: Sequence[Row]) -> Scores:
    over = rule._duration("over")
    for row in rows:
        within = [one for one in rows if row.at_us - over < one.at_us <= row.at_us]
        yield row.at_us, sum(one.answers[rule.value] for one in within)


def _steps(rule: Change, rows: Sequence[Row]) -> Scores:
    for one, two in pairwise(rows):
        yield two.at_us, abs(two.answers[rule.value] - one.answers[rule.value])


def _rates(rule: Rate, rows: Sequence[Row]) -> Scores:
    for one, two in pairwise(rows):
        grown = growth(one.answers[rule.value], two.answers[rule.value])
        yield two.at_us, grown * rule._duration("rate") / (two.at_us - one.at_us)


def _lengths(rule: Flatline, rows: Sequence[Row]) -> Scores:
    first = rows[0]
    for row in rows:
        if abs(row.answers[rule.value] - first.answers[rule.value]) > rule.within:
            first = row
        yield row.at_us, (row.at_us - first.at_us) / 1e6


_SCORES = {
    Threshold: _values,
    Ratio: _shares,
    RollingSum: _sums,
    Change: _steps,
    Rate: _rates,
    Flatline: _lengths,
}


def _silences(times: Sequence[int], longer_us: int, end_us: int) -> Iterator[tuple[str, int]]:
    for one, two in pairwise([*times, None]):
        if (end_us if two is None else two) - one > longer_us:
            yield "fired", one + longer_us
            if two is not None:
                yield "cleared", two

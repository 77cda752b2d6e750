"""How each rule is evaluated: by columns if its kind supports it, otherwise row by row."""

from __future__ import annotations

from ..kinds.absence import Absence
from ..rule import LimitRule, Rule
from .absence_columns import AbsenceColumns
from .evaluator import Evaluator, RowByRow
from .limit_columns import keeps, limit_columns


def evaluator_of(rule: Rule, readings: bool = False) -> Evaluator:
    """An evaluator for a rule, with an empty memory, over windows or over `readings`.

    >>> import streamgauge as sg
    >>> type(evaluator_of(sg.rules.Threshold("hot", value="t", above=78))).__name__
    'LimitColumns'
    >>> type(evaluator_of(sg.rules.NewTerm("new", learn="1h"))).__name__
    'RowByRow'
    """
    if isinstance(rule, LimitRule):
        return limit_columns(rule, readings) or RowByRow(rule)
    if isinstance(rule, Absence) and keeps(
        rule, Absence, ("window", "advance", "concerned", "fired", "cleared")
    ):
        return AbsenceColumns(rule)
    return RowByRow(rule)

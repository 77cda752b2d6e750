"""Classifiers' scores: fields of packets that become columns, and cuts on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...app import Settings
from ..cuts.cut import Cut, wants
from .packet import number

_FORM = re.compile(r"\s*([A-Za-z_][\w.:]*)\s*(?:(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?))?\s*")
_HOLDS = {
    ">=": lambda column, limit: column >= limit,
    "<=": lambda column, limit: column <= limit,
    ">": lambda column, limit: column > limit,
    "<": lambda column, limit: column < limit,
}
PREFIX = "score_"
"""The prefix of scores' columns."""


@dataclass(frozen=True)
class Score:
    """A field of packets, a path such as ``classifications.SN``, and the cut on it, if there is one."""

    path: str
    relation: str = ""
    limit: float = 0.0

    @property
    def column(self) -> str:
        """The name of its column."""
        return PREFIX + re.sub(r"\W", "_", self.path)

    @property
    def cut(self) -> Cut | None:
        """The cut, which keeps alerts whose score is known and past the limit."""
        if not self.relation:
            return None
        text = f"{self.path} {self.relation} {self.limit:g}"
        return Cut(text, text, wants(_HOLDS[self.relation](pl.col(self.column), self.limit)))

    def of(self, record: Any) -> float | None:
        """Return the score in a packet; None if it is missing."""
        for step in self.path.split("."):
            record = record.get(step) if isinstance(record, Mapping) else None
        return number(record)


def scores_of(settings: Settings) -> tuple[Score, ...]:
    """Parse the scores in ``--set scores=``. Raises `ValueError` for anything but fields and limits.

    >>> [(score.column, score.relation, score.limit) for score in scores_of({"scores": "rf>0.5, snn.ia"})]
    [('score_rf', '>', 0.5), ('score_snn_ia', '', 0.0)]
    """
    scores = []
    for text in filter(None, (part.strip() for part in settings.get("scores", "").split(","))):
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"--set scores must be such as rf_snia_vs_nonia>0.5,mulens, got {text!r}")
        scores.append(Score(match[1], match[2] or "", float(match[3] or 0)))
    if len({score.column for score in scores}) < len(scores):
        raise ValueError(f"--set scores names a field twice: {settings['scores']}")
    return tuple(scores)

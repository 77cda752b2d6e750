"""A fixed share of the rows, each chosen independently."""

from __future__ import annotations

from typing import Self

from ..core.bernoulli_base import Share
from ..core.uniform import Uniform
from .groups import BernoulliSampleGroups


class BernoulliSample(Uniform, Share):
    """Each row with probability p, independently: a sample that grows with the stream.

    From n rows it contains a binomial number with mean n·p, with 95 % confidence within 2·sqrt(n·p·(1 − p)) +
    1 of it. A number of its rows, divided by p, is an unbiased estimate for the stream. Between two sampled
    rows it skips a geometric number of rows. Merging unites both samples: exact, associative and commutative.
    Memory is n·p items and 16 bytes each. Raises `SketchError` for a p out of range, samples of another p,
    and bytes that are not a Bernoulli sample; `seed` is as in `Reservoir`.

    Source: Särndal, Swensson, Wretman, "Model Assisted Survey Sampling", 1992, section 3.2; Hoeffding,
    "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963, for `error`.

    >>> import streamgauge as sg
    >>> sample = sg.BernoulliSample(0.1, seed=1).update(range(10_000))
    >>> 900 < len(sample) < 1100
    True
    """

    family = "BernoulliSample"

    def __init__(self, p: float = 0.01, seed: int | None = None) -> None:
        self._groups = BernoulliSampleGroups(1, p, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(parameter)

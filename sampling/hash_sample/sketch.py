"""All rows of a fixed share of the keys: the same keys in every stream."""

from __future__ import annotations

from typing import Any, Self

from ..core.bernoulli_base import Share
from .groups import HashSampleGroups


class HashSample(Share):
    """All rows of a share p of the keys: the same users in every stream, so that their rows can be joined.

    From m distinct keys it contains a binomial number with mean m·p, chosen only by a hash of the key, with
    all rows of these keys: figures per key (sessions, journeys, repeat purchases) are exact for them. With 95
    % confidence the number of keys is within 2·sqrt(m·p·(1 − p)) + 1 of its mean; the choice is the same in
    each run, so repetition does not average it out. Merging unites both samples. Memory is the sampled rows
    and 16 bytes each. Raises `SketchError` for a p out of range, samples of another p, and bytes that are not
    a hash sample; `TypeError` if keys are missing.

    Source: Duffield, Grossglauser, "Trajectory Sampling for Direct Traffic Observation", SIGCOMM 2000.

    >>> import streamgauge as sg
    >>> visits = sg.HashSample(0.5).update(["/a", "/b"], key=["ann", "bob"])
    >>> orders = sg.HashSample(0.5).update([17.5, 3.0], key=["bob", "ann"])
    >>> len(visits) == len(orders)
    True
    """

    family = "HashSample"

    def __init__(self, p: float = 0.01, seed: int | None = None) -> None:
        self._groups = HashSampleGroups(1, p, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(parameter)

    def update(self, values: Any, key: Any = None) -> Self:
        """Add values with their keys, one per row."""
        return self._update(values, key=key)

"""The rate of posts over time: a daily rhythm, bursts of interest, floods of retweets.

Everything is a function of only the load's seed and the time, so any slice of a stream can be generated
separately, repeatedly, or in another process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

_HORIZON = 60.0  # seconds: bursts are drawn minute by minute, and none lasts longer


@dataclass(frozen=True, slots=True)
class Surge:
    """A tag that many authors suddenly use, or (`flood`) that a few authors push by retweeting."""

    at: float
    height: float
    tag: int
    flood: bool
    first_author: int
    n_authors: int

    def weight(self, t: float) -> float:
        """Return the traffic that it adds at time `t` (seconds), as a share of the usual."""
        age = t - self.at
        if age < 0:
            return 0.0
        if self.flood:
            return self.height if age < 3.0 else 0.0
        return self.height * math.exp(-age / 5.0)


@dataclass(frozen=True)
class Load:
    """A social stream to generate.

    `rate`: posts per second, averaged over a day. `start`: the authors' clock time at the beginning (UTC).
    `day`: the seconds in which a whole day's rhythm passes; the clocks themselves are not compressed. `zipf`:
    the exponent of the tags' popularity. `duplicates`, `malformed`: shares of all messages; malformed ones
    are truncated lines, plain text and bytes that are not text. `late`: share of posts that arrive minutes
    after their own time; the others arrive within seconds, out of order.

    >>> load = Load(rate=1000, seed=7)
    >>> load.rate_at(0.0) == Load(rate=1000, seed=7).rate_at(0.0)
    True
    """

    rate: float = 20_000.0
    seed: int = 0
    start: datetime = datetime(2026, 6, 1, 12, tzinfo=UTC)
    day: float = 86_400.0
    zipf: float = 1.1
    burst_every: float = 8.0
    flood_every: float = 15.0
    duplicates: float = 0.005
    malformed: float = 0.001
    late: float = 0.002

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ValueError(f"the rate must be above 0 posts a second, got {self.rate}")
        if not self.day > 0:
            raise ValueError(f"the day must last longer than 0 seconds, got {self.day}")
        for name in ("duplicates", "malformed", "late"):
            if not 0 <= getattr(self, name) < 0.5:
                raise ValueError(f"the share {name} must be in 0 … 0.5, got {getattr(self, name)}")

    @property
    def slice_seconds(self) -> float:
        """The seconds of stream generated at once: about 65,000 posts, at most a second."""
        return min(max(65_536 / self.rate, 0.02), 1.0)

    def random(self, *path: int) -> np.random.Generator:
        """Return the random generator of one part of the stream, the same in every run and process."""
        return np.random.default_rng([self.seed, *path])

    def bursts(self, t: float) -> list[Surge]:
        """Return the bursts and floods that are active at time `t`."""
        minute = int(t // _HORIZON)
        near = [burst for m in (minute - 1, minute) if m >= 0 for burst in self._bursts_of(m)]
        return [burst for burst in near if burst.weight(t) > 0.001]

    def _bursts_of(self, minute: int) -> list[Surge]:
        rng = self.random(1, minute)
        made = []
        for flood, every in ((False, self.burst_every), (True, self.flood_every)):
            for _ in range(rng.poisson(_HORIZON / every)):
                made.append(
                    Surge(
                        at=(minute + rng.random()) * _HORIZON,
                        height=rng.uniform(0.1, 0.4),
                        tag=int(rng.integers(20, 2_000)),
                        flood=flood,
                        first_author=int(rng.integers(0, 100_000)),
                        n_authors=int(rng.integers(5, 20)),
                    )
                )
        return made

    def rate_at(self, t: float) -> float:
        """Return the expected posts per second `t` seconds after the start, including bursts.

        The day begins at nine in the morning; its minimum is at four at night, its peaks are at noon and at
        eight in the evening, and its average is 1.
        """
        hour = 2 * math.pi * (t / self.day + 5 / 24)
        rhythm = 1 - 0.5 * math.cos(hour) - 0.25 * math.cos(2 * hour)
        return self.rate * rhythm * (1 + sum(burst.weight(t) for burst in self.bursts(t)))

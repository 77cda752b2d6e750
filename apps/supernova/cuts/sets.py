"""The sets of cuts that there are, and which suit a survey."""

from __future__ import annotations

from .bts import BTS
from .cut import CutSet
from .quality import PURITY, QUALITY
from .rising import RISING

SETS: dict[str, tuple[CutSet, ...]] = {"ztf": (PURITY, QUALITY, BTS, RISING), "rubin": (RISING,)}
"""By survey; packets of the others lack what these look at."""


def cut_set(survey: str, name: str) -> CutSet:
    """The set of that name. Raises `ValueError`, naming those that there are.

    >>> [cut.name for cut in cut_set("ztf", "quality").cuts]
    ['real', 'clean']
    """
    known = {one.name: one for one in SETS[survey]}
    if name not in known:
        raise ValueError(f"--set cuts={name}: the cuts for {survey} are {', '.join(known)}")
    return known[name]

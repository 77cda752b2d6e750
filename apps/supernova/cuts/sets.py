"""All sets of cuts, by survey."""

from __future__ import annotations

from .bts import BTS
from .cut import CutSet
from .quality import PURITY, QUALITY
from .rising import RISING

SETS: dict[str, tuple[CutSet, ...]] = {"ztf": (PURITY, QUALITY, BTS, RISING), "rubin": (RISING,)}
"""The sets by survey; packets of other surveys lack the fields that they need."""


def cut_set(survey: str, name: str) -> CutSet:
    """Return the set with a name. Raises `ValueError`, naming the existing ones.

    >>> [cut.name for cut in cut_set("ztf", "quality").cuts]
    ['real', 'clean']
    """
    known = {one.name: one for one in SETS[survey]}
    if name not in known:
        raise ValueError(f"--set cuts={name}: the cuts for {survey} are {', '.join(known)}")
    return known[name]

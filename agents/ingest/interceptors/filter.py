"""Keep messages that match a regular expression, or those that don't."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from ..batch import Batch
from ..component import Place
from ..sources.lines import check_regex

REASON = "filter"


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Keeps messages in which `regex` (RE2 syntax) matches; with `exclude`, the others.

    All other messages are dropped, and counted as dropped.
    """

    regex: str
    exclude: bool = False

    def __post_init__(self) -> None:
        check_regex("regex", self.regex)

    def open(self, place: Place) -> Filter:
        """See `InterceptorSettings`."""
        return self

    def apply(self, batch: Batch) -> Batch:
        """See `Interceptor`."""
        matches = pc.match_substring_regex(batch.to_arrow(), self.regex).to_numpy(zero_copy_only=False)
        return batch.where(matches != self.exclude, REASON)

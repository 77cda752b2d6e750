"""The trending table's answers, each with its bounds, as the view and the summary show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from ...operators.table.query import answers
from ...operators.table.schema import END, START, aggregates_of

STD_DEVS = 3
CONFIDENCE = 0.997
"""With two standard deviations one window in twenty would be expected outside its bounds."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate, and the bounds that the truth lies in."""

    estimate: float
    lower: float
    upper: float

    def holds(self, exact: int) -> bool:
        """Whether the exact count lies inside: bounds of a whole number are whole numbers themselves."""
        return int(np.floor(self.lower)) <= exact <= int(np.ceil(self.upper))


@dataclass(frozen=True, slots=True)
class Tag(Bounded):
    """A tag and how many posts carry it."""

    name: str


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of one window: posts exactly, authors and tags with bounds, some posts to read."""

    start: datetime
    end: datetime
    posts: int
    authors: Bounded
    tags: tuple[Tag, ...]
    sample: tuple[str, ...]


def windows(table: pa.Table) -> list[Window]:
    """The windows of a table of sketches of the trending stream, earliest first.

    Bounds of authors hold with `CONFIDENCE`; those of tags always.
    """
    asked = aggregates_of(table.schema)
    posts, tags, samples = (
        told.to_pylist() if isinstance(told, pa.Array) else told
        for told in (answers(asked[name], table.column(name)) for name in ("posts", "tags", "sample"))
    )
    authors = asked["authors"].groups(table.num_rows)
    authors.merge(np.arange(table.num_rows), table.column("authors").combine_chunks())
    estimates = authors.estimates()  # type: ignore[attr-defined]
    lowers, uppers = authors.bounds(STD_DEVS)  # type: ignore[attr-defined]
    found = [
        Window(
            start,
            end,
            int(n),
            Bounded(float(estimate), float(lower), float(upper)),
            tuple(Tag(tag["estimate"], tag["lower"], tag["upper"], tag["item"]) for tag in top),
            tuple(sample["values"]),
        )
        for start, end, n, estimate, lower, upper, top, sample in zip(
            table.column(START).to_pylist(),
            table.column(END).to_pylist(),
            posts,
            estimates,
            lowers,
            uppers,
            tags,
            samples,
        )
    ]
    return sorted(found, key=lambda window: window.start)

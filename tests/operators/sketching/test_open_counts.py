"""What groups have in their open windows: the same as a dictionary, while groups come and go."""

from __future__ import annotations

import numpy as np

from streamgauge.operators.sketching.open_counts import Counts, OpenCounts, places_of, row_text


def halves(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hashes that collide in their first half."""
    return (groups % 5).astype(np.uint64), groups.astype(np.uint64)


def test_counts_are_those_of_a_dictionary_while_groups_come_and_go() -> None:
    random, counts, wanted = np.random.default_rng(1), Counts(), {}
    for step in range(60):
        low = step * 40
        groups = random.integers(low, low + 400, 300)
        at = counts.number(*halves(groups))
        assert [int(counts.rows[n]) for n in at] == [wanted.get(g, 0) for g in groups.tolist()]
        known = OpenCounts(*halves(groups), random.integers(0, 3, 300), random.integers(0, 99, 300))
        counts.note(known)
        wanted |= dict(zip(groups.tolist(), known.rows.tolist()))
        counts.forget()
        held = counts.known()
        of_held = {int(group): int(rows) for group, rows in zip(held.h2, held.rows) if rows}
        assert of_held == {group: rows for group, rows in wanted.items() if rows}
    assert len(counts) < 2 * len(of_held) + 128
    before = counts.size
    counts.note(
        OpenCounts(held.h1.copy(), held.h2.copy(), np.zeros(len(held.h1), np.int64), held.first_rows.copy())
    )
    counts.forget()
    assert len(counts) == 0 and counts.size < before / 2


def test_a_row_is_named_by_its_offset_and_its_place_in_the_message() -> None:
    places = places_of(np.array([3, 3, 3, 4, 9, 9]))
    assert [row_text(place) for place in places.tolist()] == ["3", "3.1", "3.2", "4", "9", "9.1"]
    assert (np.diff(places) > 0).all()

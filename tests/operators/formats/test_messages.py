"""A batch of messages: where those of a partition lie side by side."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.raw_fetcher import Fetched
from streamgauge.operators.kafka.raw_messages import messages_of
from streamgauge.operators.kafka.record_batches import batches

from ..kafka.made_batches import Record, batch_of

RECORDS: list[Record] = [(i, 0, None, b"v%d" % i, []) for i in range(3)]


def fetched(*places: tuple[str, int]) -> Messages:
    """Three messages of each of these partitions, one behind the other."""
    at = dict.fromkeys(places, 0)
    steps = []
    for where in places:
        (batch,) = batches(batch_of(RECORDS, at[where]), at[where])
        steps.append(Fetched(where, batch.next_offset, batch))
        at[where] += 3
    return messages_of(steps, [0] * len(steps), headers=False)


PLACES = [[("a", 0)], [("a", 0), ("a", 0), ("a", 1)], [("a", 0), ("b", 0), ("b", 0), ("a", 0), ("b", 1)]]


@pytest.mark.parametrize("places", PLACES)
def test_what_was_read_says_where_partitions_lie_as_its_columns_do(places) -> None:
    messages = fetched(*places)
    assert messages.stretches is not None
    assert messages.runs() == replace(messages, stretches=None).runs()
    assert sum(high - low for low, high in messages.runs()) == len(messages) == 3 * len(places)


@pytest.mark.parametrize("places", PLACES)
def test_so_does_every_part_of_it(places) -> None:
    messages = fetched(*places)
    for low, high in itertools.combinations_with_replacement(range(len(messages) + 1), 2):
        part = messages.slice(low, high)
        assert part.runs() == replace(part, stretches=None).runs()


def test_so_do_messages_that_are_selected() -> None:
    messages = fetched(("a", 0), ("a", 1), ("a", 0))
    part = messages.select(np.array([0, 4, 8, 1]))
    assert part.stretches is None and part.runs() == [(0, 1), (1, 2), (2, 4)]

"""The costs of a stream per message, row and delta, and the resulting cores and traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass

UTILISATION = 0.7
"""The target utilisation of a core."""


@dataclass(frozen=True)
class Costs:
    """CPU seconds and bytes per unit."""

    decode: float
    """Decoding a message."""
    sketch: float
    """Sketching a message."""
    encode_row: float
    """Serialising a row of a delta."""
    merge_row: float
    """Reading and merging a row of a delta."""
    merge_delta: float
    """Merging a delta, whatever it contains."""
    close_row: float
    """Emitting a group of a closed window with its answers."""
    row_bytes: float
    """A row of a delta on the table topic."""
    state_bytes: float
    """A group of an open window in memory."""
    read: float = 0.0
    """Reading a message from Kafka, which includes decompressing it."""
    delta_bytes: float = 0.0
    """A delta without rows on the table topic."""

    def needs(
        self,
        rate: float,
        partitions: int,
        groups: int,
        every: float,
        tables: int = 1,
        window: float = 60.0,
        keyed: bool = False,
    ) -> dict[str, float]:
        """Compute the cores of workers and mergers, and the traffic, for `rate` messages per second.

        Each of the input's `partitions` sends a delta every `every` seconds to each of the `tables`
        partitions of the table topic. It has a row for each group and window that the partition has seen
        since: of all groups, or, in a topic that is `keyed` by the group, of its share.
        """
        rows = partitions * rows_per_second(
            rate / partitions, groups_near(groups, partitions, keyed), every, window
        )
        deltas = partitions * tables / every
        worker = rate * (self.read + self.decode + self.sketch) + rows * self.encode_row
        merger = rows * self.merge_row + deltas * self.merge_delta + groups / window * self.close_row
        return {
            "worker cores": worker / UTILISATION,
            "merger cores": merger / UTILISATION,
            "table MB/s": (rows * self.row_bytes + deltas * self.delta_bytes) / 1e6,
            "state GB": 2 * groups * self.state_bytes / 1e9,
        }


def groups_near(groups: float, partitions: int, keyed: bool) -> float:
    """Return the number of groups whose messages reach one partition."""
    return groups / partitions if keyed else groups


def piece_seconds(every: float, window: float) -> float:
    """Return the mean time that one row of a delta covers: checkpoints and window borders both split time.

    >>> piece_seconds(10, 60), piece_seconds(60, 60)
    (8.571428571428571, 30.0)
    """
    return 1 / (1 / every + 1 / window)


def rows_per_second(rate: float, groups: float, every: float, window: float) -> float:
    """Return the average rows per second of a partition with this rate of messages and number of groups.

    All pieces are assumed to be equally long; short ones have fewer groups, so this is a slight overestimate.
    """
    piece = piece_seconds(every, window)
    return groups * -math.expm1(-rate * piece / groups) / piece

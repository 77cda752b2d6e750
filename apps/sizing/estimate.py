"""Estimate a stream's workers and mergers, their memory, and the traffic of its table topic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from . import measured
from .calibration import costs as costs_here
from .costs import Costs, groups_near, piece_seconds, rows_per_second
from .synthetic import aggregates_of, delta_bytes, delta_of, frame_of, state_bytes, stream_of

PER_PARTITION = 50_000
"""Messages per second of one partition, if the number of partitions isn't set."""
LARGEST = 200_000
"""The most rows to sketch for a size. For more rows, fewer groups with as many rows each are sketched."""
FEWEST = 10
"""The fewest groups to sketch, if there are as many, because arrays begin with room for some."""
MOST_MERGERS = 1_000
DAY = 86_400


@dataclass(frozen=True)
class Workload:
    """The input of a stream, and its computation. Durations are in seconds."""

    rate: float
    keys: int
    aggregates: str
    window: float = 60.0
    checkpoint: float = 1.0
    partitions: int = 0
    """0: one for every 50,000 messages per second."""
    keyed: bool = False
    """Whether the topic's messages are partitioned by the stream's keys."""
    message_bytes: int = measured.MESSAGE_BYTES

    @property
    def input_partitions(self) -> int:
        """The number of input partitions."""
        return self.partitions or max(math.ceil(self.rate / PER_PARTITION), 1)


@dataclass(frozen=True)
class Estimate:
    """The requirements of a stream. Cores and processes include headroom: a core should be 70 % busy."""

    partitions: int
    worker_cores: float
    workers: int
    worker_bytes: float
    """Memory of each worker."""
    merger_cores: float
    mergers: int
    """Runs of the group that merge, each with a partition of the table topic."""
    merger_bytes: float
    """Memory of each merger."""
    table_bytes_per_day: float
    row_bytes: float
    """A row of a delta: one group of one window."""
    group_bytes: float
    """A group of an open window in memory."""


def estimate_of(load: Workload, calibrate: bool = False) -> Estimate:
    """Estimate the requirements of a load, from stored costs, or with `calibrate` from costs on this machine.

    Raises `ValueError` if it can't work with these partitions and checkpoints, or if an aggregate was never
    measured.
    """
    partitions = load.input_partitions
    piece, near = piece_seconds(load.checkpoint, load.window), groups_near(load.keys, partitions, load.keyed)
    sent = _size(load.rate / partitions * piece, near)
    stream = stream_of(aggregates_of(load.aggregates))
    delta = delta_of(stream, frame_of(*sent))
    window = delta_of(stream, frame_of(*_size(load.rate * load.window, load.keys)))
    empty, row = delta_bytes(delta)
    assert delta.table is not None
    height = delta.table.num_rows
    known = (
        costs_here(load.aggregates, *sent) if calibrate else _measured(load.aggregates, row, sent[0] / height)
    )
    costs = replace(
        _for_messages(known, load.message_bytes),
        row_bytes=row,
        delta_bytes=empty,
        state_bytes=state_bytes(stream, window),
    )
    mergers, needs = _merged(costs, load)
    workers = math.ceil(needs["worker cores"])
    if workers > partitions:
        raise ValueError(
            f"{workers} workers are needed, but only one can read each of the {partitions} partitions; "
            "raise --partitions"
        )
    rows = rows_per_second(load.rate / partitions, near, load.checkpoint, load.window) * load.checkpoint
    return Estimate(
        partitions=partitions,
        worker_cores=needs["worker cores"],
        workers=workers,
        worker_bytes=measured.PROCESS_BYTES
        + math.ceil(partitions / workers) * rows * state_bytes(stream, delta),
        merger_cores=needs["merger cores"],
        mergers=mergers,
        merger_bytes=measured.PROCESS_BYTES + 1e9 * needs["state GB"] / mergers,
        table_bytes_per_day=1e6 * needs["table MB/s"] * DAY,
        row_bytes=costs.row_bytes,
        group_bytes=costs.state_bytes,
    )


def _size(messages: float, groups: float) -> tuple[int, int]:
    """Return the rows and groups to sketch in place of this many messages, with as many rows per group.

    Groups with more than `LARGEST` / `FEWEST` rows get that many, because most sketches no longer grow then.
    """
    rows = min(max(round(messages), 1), LARGEST)
    return rows, max(round(groups * min(1.0, rows / messages)), round(min(groups, FEWEST)), 1)


def _merged(costs: Costs, load: Workload) -> tuple[int, dict[str, float]]:
    """Return the least number of mergers that keep up, each on a core, and the resulting requirements."""
    mergers = 1
    while mergers <= MOST_MERGERS:
        needs = costs.needs(
            load.rate, load.input_partitions, load.keys, load.checkpoint, mergers, load.window, load.keyed
        )
        if needs["merger cores"] <= mergers:
            return mergers, needs
        mergers = max(mergers + 1, min(math.ceil(needs["merger cores"]), 2 * mergers))
    raise ValueError(
        f"{MOST_MERGERS} mergers don't keep up with {load.input_partitions} partitions and a checkpoint "
        f"every {load.checkpoint:g} s; raise --checkpoint, or partition the topic by keys (--keyed)"
    )


def _measured(aggregates: str, row_bytes: float, messages: float) -> Costs:
    """Return the costs in `measured`, for rows of this size with this many messages.

    A row's costs are interpolated between rows with 20 and with 10,000 messages, by its bytes. Sketching has
    a cost per message and per row.
    """
    names = [entry.partition(":")[0].strip() for entry in aggregates.split(",")]
    if missing := [name for name in names if name != "count" and name not in measured.AGGREGATES]:
        raise ValueError(f"the cost of {', '.join(missing)} was never measured; --calibrate measures it here")
    base, *rows = (measured.AGGREGATES[name] for name in ("", *(name for name in names if name != "count")))
    few = [sum(row[at] for row in (base, *rows)) for at in range(5)]
    # In a delta of 20 rows with only a count, nearly all costs are the delta's, not the rows'.
    many = [base[at] + sum(row[5 + at] for row in rows) for at in range(5)]
    share = max((row_bytes - few[1]) / (many[1] - few[1]), 0.0) if many[1] > few[1] else 0.0
    encode, merge, close = (low + share * max(high - low, 0.0) for low, high in zip(few[2:], many[2:]))
    sketch = base[5] + sum(row[5] for row in rows)
    return Costs(
        read=measured.READ,
        decode=measured.DECODE,
        sketch=sketch + max(few[0] - sketch, 0.0) * min(measured.FEW / messages, measured.FEW),
        encode_row=encode,
        merge_row=merge,
        merge_delta=measured.MERGE_DELTA,
        close_row=close,
        row_bytes=row_bytes,
        state_bytes=0.0,
    )


def _for_messages(costs: Costs, message_bytes: int) -> Costs:
    """Adapt costs to messages of another size than the measured ones. Shorter ones cost as much."""
    further = max(message_bytes - measured.MESSAGE_BYTES, 0)
    speed = costs.decode / measured.DECODE
    return replace(
        costs,
        read=costs.read + speed * further * measured.READ_BYTE,
        decode=costs.decode + speed * further * measured.DECODE_BYTE,
    )

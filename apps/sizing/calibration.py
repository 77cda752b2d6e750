"""Measure costs on this machine: the consumer's own parts over synthetic rows, without a broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import measured
from .costs import Costs
from .synthetic import BEGIN, aggregates_of, delta_bytes, delta_of, frame_of, schema, state_bytes, stream_of

if TYPE_CHECKING:
    from ...operators.definition.stream import Stream
    from ...operators.sketching.delta import Delta

RUNS = 3
_MINUTE_US = 60_000_000


def costs(aggregates: str, rows: int, groups: int) -> Costs:
    """Measure the costs of a stream with these aggregates, with `rows` rows of `groups` groups in a delta.

    Reading isn't measured, because it needs a broker: it is taken from `measured`, scaled by the ratio of the
    costs of decoding.
    """
    from ...operators.consumer.log.messages import decode, encode
    from ...operators.consumer.merge.merger import Merger
    from ...operators.formats.json.decoder import json
    from ...operators.formats.messages import Messages
    from ...operators.watermarks.position import Input

    stream = stream_of(aggregates_of(aggregates))
    frame = frame_of(rows, groups)
    some = frame.head(20_000)
    messages = Messages.of([line.encode() for line in some.write_ndjson().splitlines()])
    value = json(schema())
    decoding = least(lambda: value.decode(messages)) / some.height
    sketching = least(lambda: delta_of(stream, frame)) / rows
    delta = delta_of(stream, frame)
    assert delta.table is not None
    height = delta.table.num_rows
    encoded = encode(delta, "table", 1, 1 << 30)
    empty = encode(replace(delta, table=None, messages={}), "table", 1)

    def merge(many: int, own: Any) -> Callable[[], Merger]:
        from ...operators.kafka.chunked_records import Record

        record = Record(own.value, dict(own.headers), 0, "")

        def run() -> Merger:
            merger = Merger(stream, [Input("input", 0)])
            for number in range(many):
                merger.offer(
                    replace(decode(record), first_offset=number * rows, next_offset=(number + 1) * rows),
                    number,
                )
            return merger

        return run

    one, three = least(merge(1, encoded[0])), least(merge(3, encoded[0]))
    alone = least(merge(20, empty[0])) / 20
    size, row = delta_bytes(delta)
    return Costs(
        decode=decoding,
        sketch=sketching,
        encode_row=least(lambda: encode(delta, "table", 1, 1 << 30)) / height,
        merge_row=max((three - one) / 2 - alone, 0.0) / height,
        merge_delta=alone,
        close_row=_closing(stream, delta) / height,
        row_bytes=row,
        state_bytes=state_bytes(stream, delta),
        read=measured.READ * decoding / measured.DECODE,
        delta_bytes=size,
    )


def least(call: Callable[[], Any]) -> float:
    """Return the least CPU seconds of several calls, after one that loads kernels."""
    call()
    spent = []
    for _ in range(RUNS):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def _closing(stream: Stream, delta: Delta) -> float:
    """Measure the CPU seconds to emit the windows of a delta with their answers."""
    from ...operators.consumer.merge.merger import Merger
    from ...operators.table.query import query
    from ...operators.watermarks.position import Input

    spent = []
    for _ in range(RUNS):
        merger = Merger(stream, [Input("input", 0)])
        merger.offer(delta, 0)
        later = replace(delta.time, seen_us=(BEGIN + 300) * 1_000_000)
        after = replace(
            delta,
            table=None,
            messages={},
            first_offset=delta.next_offset,
            next_offset=delta.next_offset + 1,
            time=later,
        )
        merger.offer(after, 1)
        begin = time.process_time()
        closed = 0
        while (groups := merger.due()) is not None:
            closed += len(groups)
            query(groups.table)
            merger.mark_emitted()
        spent.append(time.process_time() - begin)
        assert delta.table is not None and closed == delta.table.num_rows
    return min(spent)

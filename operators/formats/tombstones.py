"""Columns of messages without a value or without a key.

Compacted topics delete a key by a message without a value, a tombstone. One rule applies to all formats: a
stream refuses tombstones like anything that it can't read, or skips them, or keeps each as a row of nulls,
beside which its key and other parts of the message remain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...sketches.core.lazy import np, pl
from .decode import Decoded, Decoder
from .messages import Messages, from_column
from .reasons import preceded

Tombstones = Literal["refuse", "skip", "keep"]


def decode_value(decoder: Decoder, messages: Messages, tombstones: Tombstones) -> Decoded:
    """Decode messages' values. Raises what the decoder raises."""
    if tombstones == "refuse" or not messages.is_null.any():
        return decoder.decode(messages).checked(len(messages), decoder.schema)
    there, gone = np.flatnonzero(~messages.is_null), np.flatnonzero(messages.is_null)
    decoded = _among(decoder, messages.select(there), there)
    if tombstones == "skip":
        return Decoded(decoded.frame, decoded.rows, decoded.refused, decoded.reasons, gone)
    return _with_nulls(decoded, gone, decoder.schema)


def decode_key(decoder: Decoder, messages: Messages) -> Decoded:
    """Decode messages' keys, with nulls where there is none. Raises what the decoder raises."""
    is_null = np.asarray(messages.key.is_null())
    there, gone = np.flatnonzero(~is_null), np.flatnonzero(is_null)
    decoded = _among(decoder, from_column(messages, messages.key).select(there), there)
    return _with_nulls(decoded, gone, decoder.schema)


def _among(decoder: Decoder, some: Messages, numbers: np.ndarray) -> Decoded:
    """Decode some messages of a batch, by their numbers in it."""
    decoded = decoder.decode(some).checked(len(some), decoder.schema)
    rows = numbers if decoded.rows is None else numbers[decoded.rows]
    return Decoded(decoded.frame, rows, numbers[decoded.refused], decoded.reasons)


def _with_nulls(decoded: Decoded, gone: np.ndarray, schema: Mapping[str, Any]) -> Decoded:
    """The same with rows of nulls for the messages that are gone, in the order of the messages."""
    assert decoded.rows is not None
    rows = np.concatenate([decoded.rows, gone])
    if not len(gone):
        return decoded
    names = list(schema)
    nothing = pl.DataFrame({name: pl.Series([None] * len(gone), dtype=schema[name]) for name in names})
    order = np.argsort(rows, kind="stable")
    frame = (
        pl.concat([decoded.frame.select(names), nothing])[order] if names else pl.DataFrame(height=len(rows))
    )
    return Decoded(frame, rows[order], decoded.refused, decoded.reasons)


def beside(value: Decoded, key: Decoded, count: int) -> Decoded:
    """Rows of values and of keys side by side; a message is refused if either is."""
    refused = dict(zip(key.refused.tolist(), (preceded("the key: ", reason) for reason in key.reasons)))
    refused |= dict(zip(value.refused.tolist(), value.reasons))
    kept = np.ones(count, bool)
    kept[[*refused, *value.skipped.tolist()]] = False
    for number in value.skipped.tolist():
        refused.pop(number, None)
    parts = []
    for decoded in (value, key):
        rows = np.arange(count) if decoded.rows is None else decoded.rows
        parts.append(decoded.frame.filter(pl.Series(kept[rows], dtype=pl.Boolean)))
    frame = pl.concat(parts, how="horizontal")
    numbers = np.array(sorted(refused), np.int64)
    return Decoded(
        frame, np.flatnonzero(kept), numbers, [refused[n] for n in numbers.tolist()], value.skipped
    )

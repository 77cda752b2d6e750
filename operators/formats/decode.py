"""Value decoders: messages in, rows and refusals out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...sketches.core.lazy import np, pl
from .messages import Messages

TOMBSTONE = "no value (a tombstone)"
"""Why a message without a value is refused, whatever its format."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of a batch of messages, and the messages that are not rows.

    Row ``i`` of `frame` is message ``rows[i]`` of the batch; `rows` is None if all messages are rows.
    `refused` has the numbers of the other messages, ascending, and `reasons` a reason for each. `skipped` are
    messages dropped on purpose, which count as filtered: tombstones, if the stream skips them.
    """

    frame: pl.DataFrame
    rows: np.ndarray | None = None
    refused: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    reasons: list[str] = field(default_factory=list)
    skipped: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def without(self, gone: np.ndarray, reasons: str | Sequence[str]) -> Decoded:
        """The same with more rows refused: those that a mask over `frame` marks, each with its reason.

        >>> import streamgauge as sg
        >>> decoded = sg.formats.Decoded(pl.DataFrame({"price": [1.0, -1.0]}))
        >>> decoded.without(np.array([False, True]), "a negative price")
        Decoded(frame=..., rows=array([0]), refused=array([1]), reasons=['a negative price'], ...)
        """
        if not gone.any():
            return self
        rows = np.arange(self.frame.height) if self.rows is None else self.rows
        whys = [reasons] * int(gone.sum()) if isinstance(reasons, str) else list(reasons)
        refused = np.concatenate([self.refused, rows[gone]])
        order = np.argsort(refused, kind="stable")
        all_reasons = [*self.reasons, *whys]
        frame = self.frame.filter(pl.Series(~gone))
        return Decoded(
            frame, rows[~gone], refused[order], [all_reasons[i] for i in order.tolist()], self.skipped
        )

    def checked(self, messages: int, schema: Mapping[str, Any]) -> Decoded:
        """Itself in the types of `schema`, after checking that it accounts for all `messages`.

        Raises `ValueError` if rows and refusals don't add up or are out of order, and `TypeError` for columns
        of other types: a row that isn't accounted for would be lost silently.
        """
        refused = np.asarray(self.refused, np.int64)
        rows = None if self.rows is None else np.asarray(self.rows, np.int64)
        if rows is None and not len(refused):
            complete = self.frame.height == messages
        else:
            parts = [np.empty(0, np.int64) if rows is None else rows, refused]
            complete = self.frame.height == len(parts[0]) and all((np.diff(part) > 0).all() for part in parts)
            complete = complete and np.array_equal(np.sort(np.concatenate(parts)), np.arange(messages))
        if not complete or len(self.reasons) != len(refused):
            raise ValueError(
                f"for {messages} messages it returned {self.frame.height} rows, and refused {len(refused)} "
                f"with {len(self.reasons)} reasons; each message must become one row, in order, or be "
                "refused with a reason"
            )
        if any(not isinstance(reason, str) for reason in self.reasons):
            raise TypeError("it returned a reason that is not a string")
        types = self.frame.schema
        wrong = [name for name in schema if types.get(name) != schema[name]]
        frame = _typed(self.frame, wrong, schema) if wrong else self.frame
        return Decoded(frame, rows, refused, self.reasons)


def _typed(frame: pl.DataFrame, wrong: Sequence[str], schema: Mapping[str, Any]) -> pl.DataFrame:
    """The frame with columns that hold only nulls cast to the types of the schema."""
    for name in wrong:
        if name not in frame.columns:
            raise TypeError(f"it returned no column {name!r}, only {', '.join(frame.columns) or 'none'}")
        if frame[name].null_count() < frame.height:
            raise TypeError(
                f"its column {name!r} has the type {frame.schema[name]}, but its schema says {schema[name]}"
            )
    return frame.with_columns(pl.lit(None, schema[name]).alias(name) for name in wrong)


class Decoder(Protocol):
    """Decodes messages into rows. `json` returns one; any object with these two members is a decoder.

    It must judge each message independently, so that the rows don't depend on batches, and it must be
    picklable: with more than one worker its class has to be in a module, not in the script that is run. It
    refuses unreadable messages with a reason and does not raise; refused messages become dead letters. Only
    if no message is to blame, for example because a service is unreachable, it raises `Unavailable`. It may
    decode values or keys.

    A decoder is a part of a stream's definition: its class's name, its `version` if it has one, and its
    attributes. A group or a checkpoint refuses a different one. Attributes that can't be serialised, such as
    a connection, are refused with `TypeError`, unless a method ``definition()`` returns the version and the
    parameters as plain JSON.

    >>> import streamgauge as sg
    >>> @dataclass(frozen=True)
    ... class Prices:
    ...     "Lines such as ``ACME;9.75``."
    ...     schema = {"symbol": pl.String, "price": pl.Float64}
    ...
    ...     def decode(self, messages: sg.formats.Messages) -> sg.formats.Decoded:
    ...         parts = messages.text.str.split_exact(";", 1).struct.unnest()
    ...         price = parts["field_1"].cast(pl.Float64, strict=False)
    ...         frame = pl.DataFrame({"symbol": parts["field_0"], "price": price})
    ...         return sg.formats.Decoded(frame).without(price.is_null().to_numpy(), "not symbol;price")
    >>> found = Prices().decode(sg.formats.Messages.of([b"ACME;9.75", b"oops", None]))
    >>> found.frame.rows(), found.refused.tolist(), found.reasons
    ([('ACME', 9.75)], [1, 2], ['not symbol;price', 'not symbol;price'])

    Pass it to a stream as ``Stream.from_kafka("prices", value=Prices())``.
    """

    @property
    def schema(self) -> Mapping[str, Any]:
        """The Polars types of its columns, by name."""

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, in the order of the messages, and why the other messages were refused."""


def check_importable(decoder: Decoder) -> None:
    """Raise `TypeError` for a decoder that another process could not import."""
    kind = type(decoder)
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise TypeError(
            f"value: the decoder {kind.__name__} is defined where worker processes can't import it; "
            "move its class to the top of a module of its own, or run with workers=1"
        )

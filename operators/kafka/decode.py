"""What a value decoder is: messages in, rows and refusals out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from .messages import Messages


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of a batch of messages, and the messages that are none.

    Row ``i`` of `frame` is message ``rows[i]`` of the batch, or message ``i`` where `rows` is None since all
    are good. `refused` are the numbers of the others, ascending, each with its reason in `reasons`.
    """

    frame: pl.DataFrame
    rows: np.ndarray | None
    refused: np.ndarray
    reasons: list[str]


class Decoder(Protocol):
    """A part of a stream's definition: can be pickled, and judges every message by itself.

    So the same rows come out however messages are cut into batches.
    """

    @property
    def schema(self) -> Mapping[str, Any]:
        """The Polars types of the columns it makes."""

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch."""

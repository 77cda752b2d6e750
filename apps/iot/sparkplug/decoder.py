"""A decoder of Sparkplug B: a row for each message, with its readings by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ....operators.formats.decode import Decoded
from ....operators.formats.field_paths import picked
from ....operators.formats.messages import Messages
from ....operators.formats.per_message import Misread, one_by_one
from .birth_log import birth_log
from .births import Birth, Births, session_of, stamp_of
from .payload import Speaker, is_reading, needs_datatype, number_of, payload_of, speaker_of

_READING = pa.struct([("metric", pa.string()), ("at", pa.int64()), ("value", pa.float64())])
_ROW = pa.struct(
    [
        ("node", pa.string()),
        ("unit", pa.string()),
        ("arrived", pa.int64()),
        ("seq", pa.int64()),
        ("birth", pa.int64()),
        ("dead", pa.int64()),
        ("readings", pa.list_(_READING)),
    ]
)
_COLUMNS = tuple((name, (name,)) for name in _ROW.names)
_LATEST_MS = 1 << 47
"""Times after this don't fit a timestamp column."""


@dataclass(frozen=True)
class Sparkplug:
    """A `Decoder` of Sparkplug B; the MQTT topic is in the messages' keys, births are in a topic.

    A row has: the `node` and the sending `unit`, a node or a device; when the message `arrived`, by Kafka
    (ms); its `seq`; whether it is a node's `birth` (1, else null); whether the unit is `dead` (1), born (0),
    or neither (null); its `readings`, each with the metric's name, its own time (ms) and the number. Null and
    historical readings are left out, as are metrics without a number. Aliases, and omitted datatypes, are
    resolved by the unit's last birth before the message (`births`).
    """

    topic: str
    settings: Mapping[str, Any]

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(picked(pa.array([], _ROW), _COLUMNS).schema)

    def definition(self) -> dict[str, Any]:
        """Return how it decodes, without the location of births."""
        return {"version": 1}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused. Raises `Unavailable`."""
        session = _Session(self)
        keys, stamps = messages.key.to_pylist(), messages.timestamp.tolist()
        reads = [partial(session.row, key, stamp) for key, stamp in zip(keys, stamps)]
        decoded = one_by_one(messages, reads, _built, lambda rows: picked(rows, _COLUMNS))
        if session.away is not None:
            raise session.away
        return decoded


def _built(rows: list[Any]) -> pa.Array:
    return pa.array(rows, _ROW)


class _Session:
    """The decoding of one batch. Births are read to their end once, if any message needs them."""

    def __init__(self, decoder: Sparkplug) -> None:
        self._decoder = decoder
        self._births: Births | None = None
        self.away: Exception | None = None

    def births(self) -> Births:
        """All births known by now."""
        if self._births is None:
            if self.away is not None:
                raise self.away
            try:
                self._births = birth_log(self._decoder.topic, self._decoder.settings).births()
            except Exception as error:
                self.away = error  # decoding single messages would blame the message
                raise
        return self._births

    def row(self, key: bytes | None, arrived: int, data: memoryview) -> dict[str, Any]:
        """Return a message's row. Raises `Misread` if it can't be decoded."""
        speaker = speaker_of(key)
        if not speaker.kind:
            return {}
        payload = payload_of(data)
        row_: dict[str, Any] = {"node": speaker.node, "unit": speaker.unit, "arrived": arrived}
        if speaker.kind == "NDEATH":
            ended, now = session_of(payload), self.births().session(speaker.node, arrived)
            # A broker reports a lost connection late, perhaps after the node is back.
            over = None not in (ended, now) and ended != now
            return {} if over else {**row_, "dead": 1}
        row_["seq"] = payload.seq if payload.HasField("seq") else None
        if speaker.kind == "DDEATH":
            return {**row_, "dead": 1}
        if speaker.kind.endswith("BIRTH"):
            row_ |= {"dead": 0, "birth": 1 if speaker.device is None else None}
        stamp = stamp_of(payload, arrived)
        row_["readings"] = self._readings(speaker, payload, stamp, arrived)
        return row_

    def _readings(self, speaker: Speaker, payload: Any, stamp: int, arrived: int) -> list[dict[str, Any]]:
        birth: Birth | None = None
        born = speaker.kind.endswith("BIRTH")
        readings = []
        for metric in payload.metrics:
            name, datatype = metric.name, metric.datatype
            if not born and (not name or needs_datatype(metric)):
                if not name and not metric.HasField("alias"):
                    raise Misread("a metric in it has neither a name nor an alias")
                birth = birth or self.births().of(speaker, stamp, arrived)
                metric_id = name or metric.alias
                if metric_id not in birth.metrics:
                    shown = f"the metric {name!r}" if name else f"the alias {metric.alias}"
                    raise Misread(f"{shown} is not in {birth} of {speaker.unit}; {speaker.rebirth}")
                name, usual = birth.metrics[metric_id]
                datatype = datatype or usual
            if metric.is_historical or not is_reading(name):
                continue
            value = number_of(metric, datatype)
            if value is not None:
                at = metric.timestamp if metric.HasField("timestamp") else stamp
                readings.append({"metric": name, "at": min(at, _LATEST_MS), "value": value})
        return readings

"""Sources' positions, stored as records of a compacted topic.

A source's positions are written in the same transaction as its messages, so either both exist or neither. The
key of a record is the JSON array of the agent, the source and its part (a file); its value is the position as
JSON, with the number of its `form`, and null once that part is gone. The record of the part "" counts the
source's transactions: an agent whose commit has an unknown outcome checks there whether it took place. The
record of "claim" names the agent that reads the source now: an older agent of the same name sees there that
it was fenced.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from ...operators.kafka.reader import EARLIEST, Reader
from ...operators.kafka.topics import Admin, ensure_topic, high_watermarks
from ...operators.kept_form import form_of
from .batch import Positions

TOPIC = "streamgauge.ingest.positions"
COUNT = ""
"""The part of a source whose position counts its transactions."""
CLAIM = "claim"
"""The part whose position names the last agent that began or committed."""

_FORM = 2
_PARTITIONS = 8
_CONFIG = {
    "cleanup.policy": "compact",
    # Agents read their partition at the start, so keep it short.
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
_SECONDS = 10.0
_READ_SECONDS = 180.0
"""A timeout longer than a killed agent's transaction can block readers."""


class KafkaPositions:
    """The positions of one source, `owner` (agent/source), in the topic at these brokers.

    The topic is created if missing. Raises `TopicError` if that fails.
    """

    def __init__(self, client: Admin, config: Mapping[str, Any], agent: str, source: str) -> None:
        self._client, self._config = client, config
        self._begin = [agent, source]
        partitions = ensure_topic(client, TOPIC, _PARTITIONS, _CONFIG)
        self.partition = zlib.crc32(agent.encode()) % partitions

    def read(self) -> dict[str, dict[str, Any]]:
        """Read all parts' positions as of the last committed transaction.

        Call this when the source's own earlier transactions have ended. Other sources' transactions may be
        open: it waits for these, since records committed after one can only be read when it has ended. Raises
        `WrittenByNewer` for a newer form.
        """
        where = (TOPIC, self.partition)
        end = high_watermarks(self._client, [where], _SECONDS)[where]
        positions: dict[str, dict[str, Any]] = {}
        # This read is short, so no kernel is compiled for it.
        with Reader(self._config, {where: EARLIEST}, source="plain") as reader:
            for messages in reader.read_to({where: end}, timeout=_READ_SECONDS):
                for key, value in zip(messages.key.to_pylist(), messages.value.to_pylist()):
                    agent, source, part = json.loads(key)
                    if [agent, source] != self._begin:
                        continue
                    if value is None:
                        positions.pop(part, None)
                    else:
                        positions[part] = _read(json.loads(value), f"the position of {agent}/{source}")
        return positions

    def records(self, changed: Positions) -> Iterator[tuple[bytes, bytes | None]]:
        """Return keys and values of the records for changed positions."""
        for part, position in changed.items():
            key = json.dumps([*self._begin, part]).encode()
            yield key, None if position is None else json.dumps({**position, "form": _FORM}).encode()


def _read(kept: dict[str, Any], what: str) -> dict[str, Any]:
    form_of(kept, _FORM, what)
    return {name: value for name, value in kept.items() if name != "form"}

"""How far sources have been read, as records of a compacted topic.

A source's positions travel in the same transaction as its messages, so either both are there or neither is.
The key of a record is the JSON array of the agent, the source and the part of it (a file); its value is the
position as JSON, with the number of its `form`, and null once that part is gone. The record of the part ""
counts the source's transactions: an agent whose commit has an unknown outcome sees there whether it took
place. The record of "claim" names the agent that reads the source now: an older agent of the same name sees
there that it was fenced.
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
"""The part of a source whose position is the number of its transactions."""
CLAIM = "claim"
"""The part whose position says which agent was the last to begin, or to commit."""

_FORM = 2
_PARTITIONS = 8
_CONFIG = {
    "cleanup.policy": "compact",
    # Agents read their partition when they start: keep it short.
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
_SECONDS = 10.0
_READ_SECONDS = 180.0
"""Longer than the transaction of another agent that was killed may hold up readers."""


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
        """All parts' positions, as the last committed transaction left them.

        Call it when the source's own earlier transactions have ended. Those of other sources may be open:
        they are waited for, since what was committed behind one can be read only when it has ended. Raises
        `WrittenByNewer` for a newer form.
        """
        where = (TOPIC, self.partition)
        end = high_watermarks(self._client, [where], _SECONDS)[where]
        positions: dict[str, dict[str, Any]] = {}
        # The reading is short: no kernel is compiled for it.
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
        """Keys and values of the records that say so."""
        for part, position in changed.items():
            key = json.dumps([*self._begin, part]).encode()
            yield key, None if position is None else json.dumps({**position, "form": _FORM}).encode()


def _read(kept: dict[str, Any], what: str) -> dict[str, Any]:
    form_of(kept, _FORM, what)
    return {name: value for name, value in kept.items() if name != "form"}

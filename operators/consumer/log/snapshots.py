"""What a merger knew at one offset of the table topic, kept in the topic itself.

The topic alone is enough to go on from: a snapshot says where to read it again from, the state to begin with,
and the definition and the input topic that all of it is of. It has a message's size limit for no number of
input partitions, and nothing in a consumer group that may expire.

Headers: `kind` (``state``), `fingerprint`, `sources` (a JSON object of the input topics' ids; in snapshots of
earlier versions `source`, the id of the only one), `resume` (the offset). The value is JSON, compressed by
zlib: `definition`, `state`, `delivery` and `together`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...kafka.outgoing import Outgoing
from ...sketching.closing import Mark
from ...sketching.position import Input
from .faults import DeltaError
from .parts import LARGEST_PART, Record, in_parts
from .state import of_one_topic, read_state

_KIND = b"state"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a merger goes on (`resume`, an offset of the table topic), and all it knew there (`state`).

    `delivery` is that of its run, empty where that isn't known: it decides which deltas count. `memory` is
    what sinks remember of the windows that were handed over by then, by the sinks' names. `together` are the
    names of all streams that run together with this one, its own among them; none for a lone stream.
    """

    fingerprint: str
    sources: Mapping[str, str]
    resume: int
    state: str
    definition: Mapping[str, Any]
    delivery: str = ""
    memory: Mapping[str, str] = field(default_factory=dict)
    together: tuple[str, ...] = ()

    def outgoing(self, topic: str, partition: int, largest: int = LARGEST_PART) -> list[Outgoing]:
        """Its messages."""
        headers = [
            ("kind", _KIND),
            ("fingerprint", self.fingerprint.encode()),
            ("sources", json.dumps(dict(self.sources), sort_keys=True).encode()),
            ("resume", str(self.resume).encode()),
        ]
        kept: dict[str, Any] = {
            "definition": self.definition,
            "state": self.state,
            "delivery": self.delivery,
            "memory": dict(self.memory),
        }
        kept |= {"together": self.together} if self.together else {}
        told = json.dumps(kept).encode()
        return [Outgoing(topic, partition, *p) for p in in_parts(zlib.compress(told), headers, largest)]

    @classmethod
    def of(cls, record: Record) -> Snapshot:
        """The snapshot of a record. Raises `DeltaError` if it is damaged."""
        told = record.headers
        try:
            found = json.loads(zlib.decompress(record.value))
            state, sources = found["state"], told.get("sources")
            if sources is None:
                topic = str(found["definition"]["source"].get("topic"))
                state = of_one_topic(state, topic)
                ids = {topic: told["source"].decode()}
            else:
                ids = json.loads(sources)
            resume, definition = int(told["resume"]), found["definition"]
            delivery = str(found.get("delivery", ""))
            memory = {str(name): str(kept) for name, kept in found.get("memory", {}).items()}
            together = tuple(map(str, found.get("together", ())))
            fingerprint = told["fingerprint"].decode()
            return cls(fingerprint, ids, resume, state, definition, delivery, memory, together)
        except (KeyError, ValueError, TypeError, AttributeError, zlib.error) as error:
            raise DeltaError(f"a damaged snapshot of a merger's state: {error!r}") from None

    @property
    def marks(self) -> dict[Input, Mark]:
        """How far the input partitions had come."""
        return read_state(self.state)[0].marks

    @property
    def epochs(self) -> dict[Input, int]:
        """The claims of input partitions that were seen."""
        return read_state(self.state)[0].epochs

    @property
    def progress(self) -> tuple[int, int, int]:
        """Of two snapshots, the one with more of it is the newer, whoever wrote last."""
        return self.resume, *read_state(self.state)[1].progress

    def follows(self, other: Snapshot) -> bool:
        """Whether it is newer than one that lies before it in the log.

        Where both have come equally far, the first counts, which tells whose group it is; but a later one of
        the same group may remember more.
        """
        if self.progress != other.progress:
            return self.progress > other.progress
        return self.memory != other.memory and self.sources == other.sources


def is_snapshot(headers: Mapping[str, bytes]) -> bool:
    """Whether these are the headers of a snapshot rather than of a delta."""
    return headers.get("kind") == _KIND

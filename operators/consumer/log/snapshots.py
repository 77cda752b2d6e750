"""A merger's state at one offset of the table topic, stored in the topic itself.

The topic alone is enough to resume: a snapshot has the offset to resume reading from, the state there, and
the definition and input topics that it belongs to. Its size is not limited to one message, however many input
partitions there are, and none of it is in a consumer group that may expire.

Headers: `kind` (``state``), `fingerprint`, `sources` (a JSON object of the input topics' ids), `resume` (the
offset). The value is JSON, compressed by zlib: `form`, `definition`, `state`, `delivery`, `memory` and
`together`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...kafka.chunked_records import LARGEST_PART, Record, split_value
from ...kafka.log_faults import DeltaError
from ...kafka.outgoing_message import Outgoing
from ...kept_form import form_of
from ...watermarks.global_watermark import Mark
from ...watermarks.position import Input
from .merger_state import read_state

FORM = 2
"""The version that is written."""

_KIND = b"state"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The offset of the table topic from which a merger resumes (`resume`), and its state there (`state`).

    `delivery` is the run's delivery guarantee, empty if unknown: it decides which deltas count. `memory` is
    what sinks remember of the windows emitted by then, by sink name. `together` are the names of all streams
    that run together, including this one; empty for a lone stream. `split` has the keys by which groups are
    spread over partitions (`messages.split_text`). `described` is the fingerprint of the `definition` itself,
    if the group started with another one (`lasting_state`).
    """

    fingerprint: str
    sources: Mapping[str, str]
    next_offset: int
    state: str
    definition: Mapping[str, Any]
    delivery: str = ""
    memory: Mapping[str, str] = field(default_factory=dict)
    together: tuple[str, ...] = ()
    split: str = ""
    described: str = ""

    def outgoing(self, topic: str, partition: int, largest: int = LARGEST_PART) -> list[Outgoing]:
        """The snapshot's messages."""
        headers = [
            ("kind", _KIND),
            ("fingerprint", self.fingerprint.encode()),
            ("sources", json.dumps(dict(self.sources), sort_keys=True).encode()),
            ("resume", str(self.next_offset).encode()),
        ]
        kept: dict[str, Any] = {
            "form": FORM,
            "definition": self.definition,
            "state": self.state,
            "delivery": self.delivery,
            "memory": dict(self.memory),
        }
        kept |= {"together": self.together} if self.together else {}
        kept |= {"split": self.split} if self.split else {}
        kept |= {"described": self.described} if self.described not in ("", self.fingerprint) else {}
        # Most memory is compressed already, and a higher level would take long to save little.
        value = zlib.compress(json.dumps(kept).encode(), 1 if self.memory else -1)
        return [Outgoing(topic, partition, *part) for part in split_value(value, headers, largest)]

    @classmethod
    def of(cls, record: Record) -> Snapshot:
        """Decode a record. Raises `DeltaError` for damage, `WrittenByNewer` for a newer version."""
        headers = record.headers
        try:
            fields = json.loads(zlib.decompress(record.value))
            form_of(fields, FORM, "the snapshot of a merger's state")
            state, sources = fields["state"], json.loads(headers["sources"])
            resume, definition = int(headers["resume"]), fields["definition"]
            delivery = str(fields["delivery"])
            memory = {str(name): str(kept) for name, kept in fields["memory"].items()}
            together = tuple(map(str, fields.get("together", ())))
            fingerprint = headers["fingerprint"].decode()
            split = str(fields.get("split", ""))
            described = str(fields.get("described", ""))
            return cls(
                fingerprint, sources, resume, state, definition, delivery, memory, together, split, described
            )
        except (KeyError, ValueError, TypeError, AttributeError, zlib.error) as error:
            raise DeltaError(f"a damaged snapshot of a merger's state: {error!r}") from None

    @property
    def marks(self) -> dict[Input, Mark]:
        """The input partitions' marks: how far each is read."""
        return read_state(self.state)[0].marks

    @property
    def epochs(self) -> dict[Input, int]:
        """The latest claims of input partitions."""
        return read_state(self.state)[0].epochs

    @property
    def progress(self) -> tuple[int, int, int]:
        """Orders snapshots: the one that covers more is newer, whichever worker wrote last."""
        return self.next_offset, *read_state(self.state)[1].progress

    def follows(self, other: Snapshot) -> bool:
        """Whether it is newer than a snapshot before it in the log.

        If both cover the same, the first one counts, because it determines whose group it is; but a later one
        of the same group may remember more.
        """
        if self.progress != other.progress:
            return self.progress > other.progress
        return self.memory != other.memory and self.sources == other.sources


def is_snapshot(headers: Mapping[str, bytes]) -> bool:
    """Whether these are the headers of a snapshot rather than of a delta."""
    return headers.get("kind") == _KIND

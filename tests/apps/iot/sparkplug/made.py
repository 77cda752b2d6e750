"""A plant that speaks Sparkplug B, made up, with what a reader of every message in its order would know.

Payloads are written by a description of the tests' own (``sparkplug_b.proto``).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from streamgauge.operators.formats.protobuf.files import compiled, message_class

NOON = 1_780_315_200_000
"""2026-06-01 12:00 UTC, in milliseconds."""
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 = range(1, 9)
FLOAT, DOUBLE, BOOLEAN, STRING, DATETIME = range(9, 14)


@cache
def payload_class() -> Any:
    text = Path(__file__).with_name("sparkplug_b.proto").read_text()
    return message_class(compiled("sparkplug_b.proto", {"sparkplug_b.proto": text}), PAYLOAD)


PAYLOAD = "org.eclipse.tahu.protobuf.Payload"


def payload(stamp: int | None, seq: int | None, *metrics: dict[str, Any]) -> bytes:
    """A payload; each metric is a dictionary of its fields."""
    return payload_class()(timestamp=stamp, seq=seq, metrics=metrics).SerializeToString()


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@dataclass
class Sent:
    """A message: its topic, its payload, and when it came."""

    key: bytes
    value: bytes
    arrived: int


@dataclass
class Plant:
    """Nodes, each with two devices, that report doubles by aliases, which every birth assigns again.

    `sent` is all they say, in order; `readings` what it means: unit, metric, time and value of each reading.
    """

    dice: random.Random
    now: int = NOON
    sent: list[Sent] = field(default_factory=list)
    readings: list[tuple[str, str, int, float]] = field(default_factory=list)
    seq: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, dict[str, int]] = field(default_factory=dict)

    METRICS = ("heat", "load", "Pump/flow")

    def say(self, kind: str, node: str, device: str | None, value: bytes, delay: int = 3) -> None:
        topic = f"spBv1.0/plant/{kind}/{node}" + ("" if device is None else f"/{device}")
        self.sent.append(Sent(topic.encode(), value, self.now + delay))

    def next_seq(self, node: str, birth: bool = False) -> int:
        self.seq[node] = 0 if birth else (self.seq[node] + 1) % 256
        return self.seq[node]

    def born(self, node: str) -> None:
        """A node and then its devices, each with new aliases."""
        self.sessions[node] = self.sessions.get(node, -1) + 1
        session = {"name": "bdSeq", "datatype": INT64, "long_value": self.sessions[node]}
        control = {"name": "Node Control/Rebirth", "datatype": BOOLEAN, "boolean_value": False}
        numbers = self.dice.sample(range(100), 9)
        for device in (None, "press", "oven"):
            own = {name: numbers.pop() for name in self.METRICS}
            self.aliases[unit_of(node, device)] = own
            values = {name: self.dice.uniform(0, 50) for name in own}
            metrics = [
                {"name": name, "alias": own[name], "datatype": DOUBLE, "double_value": values[name]}
                for name in own
            ]
            seq = self.next_seq(node, birth=device is None)
            more = [session, control] if device is None else []
            kind = "NBIRTH" if device is None else "DBIRTH"
            self.say(kind, node, device, payload(self.now, seq, *more, *metrics))
            self.readings += [(unit_of(node, device), name, self.now, values[name]) for name in own]
            self.now += 1

    def data(self, node: str, device: str | None, name: str, value: float, **more: Any) -> None:
        """One reading, by its alias alone."""
        self.now += self.dice.randrange(1, 4_000)
        metric = {"alias": self.aliases[unit_of(node, device)][name], "double_value": value, **more}
        kind = "NDATA" if device is None else "DDATA"
        self.say(kind, node, device, payload(self.now, self.next_seq(node), metric))
        if not more:
            self.readings.append((unit_of(node, device), name, self.now, value))

    def dies(self, node: str, session: int | None = None) -> None:
        number = self.sessions[node] if session is None else session
        metric = {"name": "bdSeq", "datatype": INT64, "long_value": number}
        self.now += 1_000
        self.say("NDEATH", node, None, payload(None, None, metric))
        self.now += 1_000

    def recording(self) -> str:
        """What mosquitto_sub -F '%U %t %x' would write."""
        lines = [f"{one.arrived / 1000:.3f} {one.key.decode()} {one.value.hex()}" for one in self.sent]
        return "\n".join(lines) + "\n"


def unit_of(node: str, device: str | None) -> str:
    return f"plant/{node}" + ("" if device is None else f"/{device}")


def lively(seed: int, rounds: int = 300) -> Plant:
    """Two nodes that report, and are born again with other aliases, now and then."""
    dice = random.Random(seed)
    plant = Plant(dice)
    for node in ("n1", "n2"):
        plant.born(node)
    for _ in range(rounds):
        node = dice.choice(["n1", "n2"])
        if dice.random() < 0.05:
            plant.now += dice.randrange(5_000)
            plant.born(node)
        else:
            device = dice.choice([None, "press", "oven"])
            plant.data(node, device, dice.choice(plant.METRICS), dice.uniform(0, 50))
    return plant

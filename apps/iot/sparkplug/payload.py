"""Sparkplug B's topics and payloads: the sender, the kind of message, and the numbers of metrics.

Source: Eclipse Sparkplug Specification, version 3.0.0, chapters 4 (topics) and 6 (payloads).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ....operators.formats.per_message import Misread
from ....operators.formats.protobuf.files import files_of, message_class
from ..described import Fields, described

_PACKAGE = "org.eclipse.tahu.protobuf"
_MESSAGES: dict[str, Fields] = {
    "Payload": {"timestamp": (1, "uint64"), "metrics": (2, "Metric"), "seq": (3, "uint64")},
    "Metric": {
        "name": (1, "string"),
        "alias": (2, "uint64"),
        "timestamp": (3, "uint64"),
        "datatype": (4, "uint32"),
        "is_historical": (5, "bool"),
        "is_null": (7, "bool"),
        "int_value": (10, "uint32"),
        "long_value": (11, "uint64"),
        "float_value": (12, "float"),
        "double_value": (13, "double"),
        "boolean_value": (14, "bool"),
    },
}
"""The fields of a payload that are read, with their numbers."""

_VALUES = tuple(name for name in _MESSAGES["Metric"] if name.endswith("_value"))
_WHOLE = {"int_value", "long_value"}

_SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}
_UNSIGNED = {5: 8, 6: 16, 7: 32, 8: 64}
"""The bits of integers by datatype: Int8 … Int64 and UInt8 … UInt64."""

KINDS = ("NBIRTH", "DBIRTH", "NDATA", "DDATA", "NDEATH", "DDEATH")
"""The kinds of messages that are read, without commands and states of hosts."""
_OTHERS = ("NCMD", "DCMD")
SESSION = "bdSeq"
"""The metric that matches a node's deaths with its births."""
_CONTROLS = ("Node Control/", "Device Control/")


class Speaker(NamedTuple):
    """A message's sender, from the MQTT topic, and its kind; `kind` is empty for messages that aren't
    read."""

    kind: str
    group: str = ""
    edge: str = ""
    device: str | None = None

    @property
    def node(self) -> str:
        """The edge node with its group, since edge nodes of two groups may have one name."""
        return f"{self.group}/{self.edge}"

    @property
    def unit(self) -> str:
        """The node, or the device with its node."""
        return self.node if self.device is None else f"{self.node}/{self.device}"

    @property
    def rebirth(self) -> str:
        """The command that makes it publish everything again."""
        return f"ask for a rebirth: true for 'Node Control/Rebirth' at spBv1.0/{self.group}/NCMD/{self.edge}"


def speaker_of(key: bytes | None) -> Speaker:
    """Parse the sender from the topic in a message's key. Raises `Misread` for other topics.

    >>> speaker_of(b"spBv1.0/plant/DDATA/line 1/press").unit
    'plant/line 1/press'
    """
    text = "" if key is None else key.decode(errors="replace")
    match text.split("/"):
        case ["spBv1.0", "STATE", *_]:
            return Speaker("")
        case ["spBv1.0", group, kind, edge] if kind[:1] == "N" and kind in (*KINDS, *_OTHERS):
            return Speaker(kind if kind in KINDS else "", group, edge)
        case ["spBv1.0", group, kind, edge, device] if kind[:1] == "D" and kind in (*KINDS, *_OTHERS):
            return Speaker(kind if kind in KINDS else "", group, edge, device)
    raise Misread(
        f"its key is {text[:100]!r}, not a topic of Sparkplug B such as spBv1.0/GROUP/NDATA/NODE; let the "
        "bridge put MQTT's topic into the key"
    )


@cache
def _payload() -> Any:
    files = files_of(described(_PACKAGE, _MESSAGES, ["metrics"], _VALUES))
    return message_class(files, f"{_PACKAGE}.Payload")


def payload_of(data: bytes | memoryview) -> Any:
    """Parse a payload. Raises `Misread` for other bytes."""
    try:
        return _payload().FromString(bytes(data))
    except Exception as error:
        raise Misread(f"not a payload of Sparkplug B: {type(error).__name__}: {error}") from None


def is_reading(name: str) -> bool:
    """Whether a metric of this name is a reading; others are about sessions, or receive commands."""
    return name != SESSION and not name.startswith(_CONTROLS)


def needs_datatype(metric: Any) -> bool:
    """Whether the number of a metric depends on a datatype that it doesn't contain."""
    return not metric.datatype and metric.WhichOneof("value") in _WHOLE


def number_of(metric: Any, datatype: int) -> float | None:
    """Return a metric's number: 1 or 0 for a Boolean; None for null, texts, times and other non-numbers.

    Integers are in unsigned fields; negative ones are in two's complement, in the bits of the datatype or of
    the whole field, because implementations differ.
    """
    which = metric.WhichOneof("value")
    if metric.is_null or which is None:
        return None
    value = getattr(metric, which)
    if which not in _WHOLE:
        return float(value)
    if datatype in _SIGNED:
        bits = _SIGNED[datatype]
        value &= (1 << bits) - 1
        return float(value - (1 << bits) if value >> (bits - 1) else value)
    if datatype in _UNSIGNED:
        return float(value & ((1 << _UNSIGNED[datatype]) - 1))
    return None

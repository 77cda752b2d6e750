"""Sparkplug B as a format of the app: readings by metric, and the states of nodes and devices.

A recording is the output of ``mosquitto_sub -t 'spBv1.0/#' -F '%U %t %x'``: a line per message, with its time
of arrival (seconds since 1970), its topic and its payload in hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.secrets import Settings as KafkaSettings
from ...app import AppFormat, Feed, Message, Settings
from ...recordings.compressed_files import opened
from ..columns import in_columns
from .decoder import Sparkplug

_UTC = pl.Datetime("us", "UTC")
_LINE = re.compile(rb"(\d+(?:\.\d+)?) (spBv1\.0/.*) ((?:[0-9a-fA-F]{2})*)")
_GROUPS = {"metric": "metric", "node": "node", "device": "unit"}

USUAL = {
    "births": "",
    "metric": "",
    "group": "metric",
    **dict.fromkeys(("limit", "dead", "stuck", "deviation", "clock"), ""),
}
"""`births` is a topic with only births, by default the messages' own. A `metric` excludes all others.

A metric is reported when it changes, so silence may be normal: rules about silence are off unless set.
"""


def _rows(feed: Feed, settings: Settings) -> Stream:
    if (group := settings["group"]) not in (*_GROUPS, ""):
        raise ValueError(f"--set group={group}: a reading's group is its metric, its node or its device")
    kafka = KafkaSettings({"bootstrap.servers": feed.bootstrap_servers, **feed.config})
    rows = feed.stream(Sparkplug(settings["births"] or feed.topic, kafka)).explode("readings")
    reading = {name: pl.col("readings").struct.field(name) for name in ("metric", "at", "value")}
    wanted = reading["metric"].is_not_null()
    if settings["metric"]:
        wanted = reading["metric"] == settings["metric"]
    rows = rows.with_columns(
        sensor=pl.when(wanted).then(pl.concat_str("unit", reading["metric"], separator="/")),
        value=pl.when(wanted).then(reading["value"]),
        at=(reading["at"] * 1_000).cast(_UTC),
        metric=reading["metric"],
    )
    return in_columns(
        rows,
        settings,
        keep=pl.col("seq").is_not_null() | pl.col("dead").is_not_null(),
        **{name: pl.col(name) for name in ("at", "sensor", "value", "node", "unit", "seq", "birth", "dead")},
        arrived=(pl.col("arrived") * 1_000).cast(_UTC),
        group=pl.col(_GROUPS[group]) if group else pl.lit(None),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise ValueError(
                    f"{path}, line {number}: it is not a time, a topic of Sparkplug B and hexadecimal "
                    "digits, as mosquitto_sub -t 'spBv1.0/#' -F '%U %t %x' writes"
                )
            seconds, topic, digits = match.groups()
            yield Message(bytes.fromhex(digits.decode()), topic, int(float(seconds) * 1_000))


SPARKPLUG = AppFormat(
    "sparkplug",
    "Sparkplug B as MQTT's bridges put it into Kafka: the topic in the key, the payload as the value",
    _rows,
    lambda path, head: _LINE.fullmatch(head.split(b"\n", 1)[0].strip()) is not None,
    _messages,
    USUAL,
)

"""The constants of `streamgauge size`: what reading, decoding and each aggregate cost on this machine.

Deltas of 50,000 rows in 2,500 groups (20 messages each), and of 200,000 in 20 (10,000 each), with a count
alone and with one aggregate besides, whose cost is the difference; in CPU time, the least of three. Reading
is from a broker on the same machine, lz4, messages of about 70 bytes and of about 1,000.

`python -m bench sizing` shows the costs; `python -m bench.sizing` prints `apps/sizing/measured.py` with this
machine's constants. FAMILIES=distinct,top_k leaves out the others.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.sizing import measured
from streamgauge.apps.sizing.calibration import costs, least
from streamgauge.apps.sizing.costs import Costs
from streamgauge.apps.sizing.synthetic import frame_of, schema
from streamgauge.operators.families import FAMILIES
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.reader import Reader

from . import curves
from .curve_topics import Events, fill, produced
from .measure import line
from .processor import cores, model

NAMES = [name for name in os.environ.get("FAMILIES", "").split(",") if name] or [
    name for name, own in FAMILIES.items() if not own.stored
]
MESSAGES = int(os.environ.get("MESSAGES", 500_000))
SIZES = {"few": (50_000, 2_500), "many": (200_000, 20)}
PADDING = 900


def aggregates(names: list[str]) -> dict[str, tuple[float, ...]]:
    """The table of `measured.AGGREGATES`."""
    alone = {size: costs("count", *own) for size, own in SIZES.items()}
    result = {"": _row({size: (own, None) for size, own in alone.items()})}
    for name in names:
        began = time.monotonic()
        both = {size: costs(f"count,{name}", *own) for size, own in SIZES.items()}
        result[name] = _row({size: (both[size], alone[size]) for size in SIZES})
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return result


def _row(pairs: dict[str, tuple[Costs, Costs | None]]) -> tuple[float, ...]:
    def part(name: str, size: str) -> float:
        whole, base = pairs[size]
        return max(getattr(whole, name) - (getattr(base, name) if base else 0.0), 0.0)

    steps = ("sketch", "row_bytes", "encode_row", "merge_row", "close_row")
    numbers = [part(name, size) for size in SIZES for name in steps]
    return tuple(float(f"{number:.3g}") for number in numbers)


def messages(padding: int) -> list[bytes]:
    """JSON messages, with a field that nobody reads of so many characters."""
    frame = frame_of(20_000, 1_000)
    if padding:
        frame = frame.with_columns(rest=pl.lit("x" * padding))
    return [line.encode() for line in frame.write_ndjson().splitlines()]


def reading(bootstrap: str, topic: str, padding: int) -> tuple[float, float, float]:
    """A message's mean size, and the seconds of CPU time of reading and of decoding it."""
    made = messages(padding)
    total = MESSAGES // (10 if padding else 1)
    produced(bootstrap, topic, (made * (-(-total // len(made))))[:total], partitions=4, compression="lz4")

    def read() -> None:
        config = {"bootstrap.servers": bootstrap}
        with Reader(config, {(topic, own): 0 for own in range(4)}, source="raw") as reader:
            assert sum(map(len, reader.read_to(reader.end_offsets(), 200_000))) == total

    value, columns = json_value(schema()), Messages.of(made)
    decoding = least(lambda: value.decode(columns)) / len(made)
    return sum(map(len, made)) / len(made), least(read) / total, decoding


def process_bytes(bootstrap: str) -> int:
    """The peak memory of a process that reads, sketches and merges one group."""
    point = curves.Point(1, Events(messages=200_000, keys=1))
    fill(bootstrap, "one-key", point.events)
    return curves.ours(bootstrap, "one-key", point).peak


def constants() -> dict[str, Any]:
    """The values of the names in `measured`."""
    with EmbeddedKafka() as broker:
        short, long = (reading(broker.bootstrap_servers, f"by-{size}", size) for size in (0, PADDING))
        process = process_bytes(broker.bootstrap_servers)
    further = long[0] - short[0]
    return {
        "SOURCE": f"{model()}, {cores()} cores",
        "MESSAGE_BYTES": round(short[0]),
        "READ": short[1],
        "READ_BYTE": max(long[1] - short[1], 0.0) / further,
        "DECODE": short[2],
        "DECODE_BYTE": max(long[2] - short[2], 0.0) / further,
        "MERGE_DELTA": costs("count", 1_000, 10).merge_delta,
        "PROCESS_BYTES": process,
        "AGGREGATES": aggregates(NAMES),
    }


def module(values: dict[str, Any]) -> str:
    """The text of `apps/sizing/measured.py` with other values."""
    text = Path(measured.__file__).read_text()
    for name, value in values.items():
        before = re.compile(rf"^({name}(?:: [^=\n]*)?) = (?:\{{.*?^\}}|[^\n]*)$", re.MULTILINE | re.DOTALL)
        own = before.search(text)
        assert own is not None, name
        text = f"{text[: own.start()]}{own[1]} = {_shown(value)}{text[own.end() :]}"
    return text


def _shown(value: Any) -> str:
    """A value as Ruff lays it out."""
    if isinstance(value, dict):
        return "{\n" + "".join(_lines_of(name, row) for name, row in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value)
    return f"{value:.3g}" if isinstance(value, float) else f"{value:_}"


def _lines_of(name: str, row: tuple[float, ...]) -> str:
    halves = ("".join(f"{number!r}, " for number in half).rstrip() for half in (row[:5], row[5:]))
    return f'    "{name}": (\n' + "".join(f"        *({half[:-1]}),\n" for half in halves) + "    ),\n"


def main() -> list[dict[str, Any]]:
    values = constants()
    rows = values.pop("AGGREGATES")
    lines = [
        line(name, f"{value:.3g}" if isinstance(value, float) else str(value), "", "")
        for name, value in values.items()
    ]
    for name, row in rows.items():
        shown = "; ".join(
            f"{1e9 * sketch:.0f} ns a message, {size:,.0f} bytes, "
            f"{1e6 * encode:.1f} + {1e6 * merge:.1f} + {1e6 * close:.1f} µs"
            for sketch, size, encode, merge, close in (row[:5], row[5:])
        )
        lines.append(line(name or "a row with a count", shown, "", ""))
    return lines


if __name__ == "__main__":
    print(module(constants()), end="")

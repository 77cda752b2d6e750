"""Streams of strings and longs, and all that a sketch holds of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.sketches.frequent_items import FrequentItems

KINDS = ("long", "string")


def zipf(seed: int, n: int, universe: int = 3000) -> np.ndarray:
    ranks = np.arange(1, universe + 1) ** -1.1
    return np.random.default_rng(seed).choice(universe, n, p=ranks / ranks.sum()).astype(np.int64) - 7


def column(stream: np.ndarray, kind: str) -> pa.Array:
    if kind == "long":
        return pa.array(stream)
    words = {
        -7: "",
        -6: "é",
        -5: "日本語",
        -4: "a" * 100,
        -3: "12345678",
        -2: "123456789",
        0: "\x00",
        1: "\x00\x00",
    }
    return pa.array([words.get(x, f"tag {x}") for x in stream.tolist()], pa.string())


def state(sketch: FrequentItems) -> tuple[dict[Any, int], int, int]:
    return {item.item: item.lower for item in sketch.top(len(sketch))}, sketch.error, sketch.weight

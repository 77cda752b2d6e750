"""Every family under the laws: one table of how it is made, fed and held to its promise."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from streamgauge.sampling.bernoulli import (
    BernoulliSample,
    BernoulliSampleGroups,
    HashSample,
    HashSampleGroups,
)
from streamgauge.sampling.decayed import DecayedReservoir, DecayedReservoirGroups
from streamgauge.sampling.decayed.counts import DecayedCount, DecayedCountGroups
from streamgauge.sampling.decayed.quantiles import DecayedQuantiles, DecayedQuantilesGroups
from streamgauge.sampling.reservoir import Reservoir, ReservoirGroups
from streamgauge.sampling.sliding import SlidingWindowSample, SlidingWindowSampleGroups
from streamgauge.sampling.stratified import StratifiedReservoir, StratifiedReservoirGroups
from streamgauge.sampling.weighted import WeightedReservoir, WeightedReservoirGroups
from streamgauge.sketches.bloom import Bloom, BloomGroups
from streamgauge.sketches.count_min import CountMin, CountMinGroups
from streamgauge.sketches.ddsketch import DDSketch, DDSketchGroups
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups
from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.kll import KLL, KLLGroups
from streamgauge.sketches.sliding_hll import SlidingHLL, SlidingHLLGroups
from streamgauge.sketches.stored.classic_quantiles import ClassicQuantiles, ClassicQuantilesGroups
from streamgauge.sketches.stored.cpc import CPC, CPCGroups
from streamgauge.sketches.stored.req import REQ, REQGroups
from streamgauge.sketches.stored.tdigest import TDigest, TDigestGroups
from streamgauge.sketches.stored.var_opt import VarOpt, VarOptGroups
from streamgauge.sketches.theta import Theta, ThetaGroups
from streamgauge.sketches.theta.tuple import Tuple, TupleGroups

from . import promises
from .family import Family

KINDS = ("long", "double", "string", "unsigned")
COUNTED = ("long", "string")


def _weight(rows: np.ndarray) -> dict[str, Any]:
    return {"weight": 1.0 + rows % 7 * 0.7}


def _time(rows: np.ndarray) -> dict[str, Any]:
    return {"time": 1_785_000_000_000_000 + (rows * 37 % 1009) * 1_000_000}


def _value(rows: np.ndarray) -> dict[str, Any]:
    return {"value": 1.0 + rows % 7}


def _key(rows: np.ndarray) -> dict[str, Any]:
    return {"key": rows % 13}


def _coupons_or_registers(sketch: Any) -> Any:
    """What HLL knows of its values. As in DataSketches, its bytes also tell of their order.

    Coupons lie in the order they came, and the HIP estimator sums up in the order of registers' changes.
    """
    image = sketch.to_bytes()
    if len(image) > 1 << sketch.lg_k:
        return sketch.lg_k, image[40:]
    return sketch.lg_k, sorted(np.frombuffer(image[8:], np.uint32))


_ITEMS = {"long": {"kind": "long"}, "unsigned": {"kind": "long"}, "string": {"kind": "string"}}
_NUMBERS = {"long": {"kind": "long"}, "double": {"kind": "double"}}

# Cuts change bytes where the package draws coins by the clock (REQ, classic quantiles, VarOpt), and in the
# last digits of sums where weights are no whole numbers (decayed quantiles); promises hold all the same.
FAMILIES = [
    Family(
        "HLL",
        HLL,
        HLLGroups,
        {"lg_k": 10},
        KINDS,
        promises.distinct,
        others=({"lg_k": 12}, {"lg_k": 7}),
        confidence=0.954,
        loose=0.5,
        view=_coupons_or_registers,
        depths=(0, 1, 7, 8, 25, 96, 97, 3000),
    ),
    Family(
        "Theta",
        Theta,
        ThetaGroups,
        {},
        KINDS,
        promises.distinct,
        typed={kind: {"lg_k": 9} for kind in KINDS},
        confidence=0.954,
        loose=0.5,
        parts=True,
        depths=(0, 1, 511, 512, 513, 3000),
    ),
    Family(
        "SlidingHLL",
        SlidingHLL,
        SlidingHLLGroups,
        {"lg_k": 9, "window": 2000.0},
        KINDS,
        promises.distinct,
        inputs=_time,
        confidence=0.954,
        loose=0.5,
        parts=True,
    ),
    Family(
        "KLL",
        KLL,
        KLLGroups,
        {"k": 64},
        ("long", "double"),
        promises.quantiles,
        others=({"k": 200}, {"k": 8}),
        typed=_NUMBERS,
        seeded=True,
        confidence=0.99,
        loose=0.3,
        order=False,
        resumes=False,
        depths=(0, 1, 64, 65, 700, 15_000),
    ),
    Family(
        "DDSketch",
        DDSketch,
        DDSketchGroups,
        {"relative_accuracy": 0.02},
        ("long", "double"),
        promises.relative_quantiles,
        loose=0.3,
        parts=True,
    ),
    Family(
        "FrequentItems",
        FrequentItems,
        FrequentItemsGroups,
        {"max_size": 64},
        COUNTED,
        promises.frequencies,
        others=({"max_size": 256}, {"max_size": 8}),
        typed=_ITEMS,
        mixed=functools.partial(promises.frequencies, max_size=8),
        loose=0.2,
        order=False,
        depths=(0, 1, 6, 49, 1000),
    ),
    Family(
        "CountMin",
        CountMin,
        CountMinGroups,
        {"eps": 0.02, "confidence": 0.9},
        COUNTED,
        promises.point_counts,
        confidence=0.9,
        loose=0.1,
        parts=True,
    ),
    Family(
        "Bloom",
        Bloom,
        BloomGroups,
        {"capacity": 20_000},
        KINDS,
        promises.membership,
        confidence=0.9,
        loose=0.2,
        parts=True,
    ),
    Family(
        "Reservoir",
        Reservoir,
        ReservoirGroups,
        {"k": 50},
        KINDS,
        promises.share,
        others=({"k": 80}, {"k": 7}),
        seeded=True,
        confidence=0.95,
        loose=0.4,
        depths=(0, 1, 50, 51, 3000),
    ),
    Family(
        "WeightedReservoir",
        WeightedReservoir,
        WeightedReservoirGroups,
        {"k": 50},
        KINDS,
        promises.part_of,
        others=({"k": 80}, {"k": 7}),
        inputs=_weight,
        seeded=True,
    ),
    Family(
        "DecayedReservoir",
        DecayedReservoir,
        DecayedReservoirGroups,
        {"k": 50, "half_life": 100.0},
        KINDS,
        promises.part_of,
        others=({"k": 80}, {"k": 7}),
        inputs=_time,
        seeded=True,
    ),
    Family(
        "DecayedCount",
        DecayedCount,
        DecayedCountGroups,
        {"half_life": 1e9},
        COUNTED,
        promises.decayed_count,
        inputs=_time,
        order=False,
    ),
    Family(
        "DecayedQuantiles",
        DecayedQuantiles,
        DecayedQuantilesGroups,
        {"half_life": 1e9, "relative_accuracy": 0.02},
        ("long", "double"),
        promises.decayed_quantiles,
        inputs=_time,
        loose=0.3,
        cut=False,
        order=False,
    ),
    Family(
        "SlidingWindowSample",
        SlidingWindowSample,
        SlidingWindowSampleGroups,
        {"k": 20, "window": 300.0},
        KINDS,
        promises.part_of,
        others=({"k": 80}, {"k": 7}),
        inputs=_time,
        seeded=True,
    ),
    Family(
        "StratifiedReservoir",
        StratifiedReservoir,
        StratifiedReservoirGroups,
        {"k": 5, "capacity": 50},
        KINDS,
        promises.part_of,
        others=({"k": 80}, {"k": 2}),
        inputs=_key,
        seeded=True,
    ),
    Family(
        "BernoulliSample",
        BernoulliSample,
        BernoulliSampleGroups,
        {"p": 0.05},
        KINDS,
        promises.part_of,
        seeded=True,
    ),
    Family(
        "HashSample",
        HashSample,
        HashSampleGroups,
        {"p": 0.3},
        KINDS,
        promises.part_of,
        inputs=_key,
        seeded=True,
    ),
    Family(
        "CPC",
        CPC,
        CPCGroups,
        {"lg_k": 9},
        KINDS,
        promises.distinct,
        others=({"lg_k": 11}, {"lg_k": 7}),
        confidence=0.954,
        loose=0.5,
        depths=(0, 1, 48, 49, 300, 1800, 9000),
    ),
    Family(
        "Tuple",
        Tuple,
        TupleGroups,
        {},
        COUNTED,
        promises.distinct,
        typed={kind: {"lg_k": 9} for kind in COUNTED},
        inputs=_value,
        confidence=0.954,
        loose=0.5,
        parts=True,
        depths=(0, 1, 512, 513, 3000),
    ),
    Family(
        "REQ",
        REQ,
        REQGroups,
        {"k": 12},
        ("long", "double"),
        promises.tail_ranks,
        others=({"k": 24}, {"k": 4}),
        confidence=0.954,
        loose=0.3,
        cut=False,
        order=False,
        repeats=False,
        depths=(0, 1, 4, 5, 300, 5000),
    ),
    Family(
        "ClassicQuantiles",
        ClassicQuantiles,
        ClassicQuantilesGroups,
        {"k": 64},
        ("long", "double"),
        promises.double_quantiles,
        others=({"k": 128}, {"k": 16}),
        confidence=0.99,
        loose=0.3,
        cut=False,
        order=False,
        repeats=False,
        depths=(0, 1, 64, 129, 2000),
    ),
    Family(
        "TDigest",
        TDigest,
        TDigestGroups,
        {"k": 100},
        ("long", "double"),
        promises.ends,
        others=({"k": 200}, {"k": 30}),
        order=False,
        resumes=False,
        without=("infinities",),
        depths=(0, 1, 2, 500, 5000),
    ),
    Family(
        "VarOpt",
        VarOpt,
        VarOptGroups,
        {"k": 50},
        ("long", "double", "string"),
        promises.part_of,
        others=({"k": 80}, {"k": 7}),
        typed={kind: {"kind": kind} for kind in ("long", "double", "string")},
        inputs=_weight,
        cut=False,
        order=False,
        repeats=False,
    ),
]

CASES = [(family, kind) for family in FAMILIES for kind in family.kinds]
IDS = [f"{family}-{kind}" for family, kind in CASES]

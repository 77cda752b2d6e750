"""What docstrings say in numbers, measured: sizes, edges of exactness, and what happens in odd corners.

Promises of error are in `promises`, which run on every stream.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import streamgauge as sg
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.stored import CPC, ClassicQuantiles, Tuple

CLAIMS: list[Callable[[], Any]] = []
"""Each asserts one sentence of a docstring."""


def claim(check: Callable[[], Any]) -> Callable[[], Any]:
    CLAIMS.append(check)
    return check


def shuffled(n: int) -> np.ndarray:
    return np.random.default_rng(1).permutation(n).astype(np.float64)


@claim
def req_knows_the_last_3_k_ranks_exactly() -> None:
    n = 50_000
    for k in (4, 12, 50):
        high, low = (sg.REQ(k, high_ranks=end, seed=1).update(shuffled(n)) for end in (True, False))
        for at in range(3 * k):
            assert high.rank(n - 1 - at) == (n - at) / n and low.rank(at) == (at + 1) / n, (k, at)


@claim
def req_and_kll_are_exact_up_to_what_they_say() -> None:
    for k in (4, 12, 100):
        assert sg.REQ(k, seed=1).update(range(6 * k - 1)).exact
        assert not sg.REQ(k, seed=1).update(range(6 * k)).exact
    for k in (8, 64, 200):
        assert sg.KLL(k, seed=1).update(range(k)).exact and not sg.KLL(k, seed=1).update(range(k + 1)).exact


@claim
def req_rounds_to_4_bytes() -> None:
    values = [1.7, 3.3e38, 1.3e-38, 1e-44]
    for value in values:
        error = abs(sg.REQ(seed=1).update(value).quantile(0.5) - value)
        assert error <= max(2.0**-24 * value, 7e-46)
    assert sg.REQ(seed=1).update([1.0, 1e39]).quantile(1) == math.inf


@claim
def kll_states_its_error_and_holds_3_k_items() -> None:
    for k, error in ((200, 0.0133), (4800, 0.0006)):
        sketch = sg.KLL(k, seed=1).update(shuffled(400_000))
        assert round(sketch.normalized_rank_error(), 4) == error and 2 * k < sketch.retained < 3.2 * k


@claim
def classic_quantiles_state_their_error() -> None:
    assert round(ClassicQuantiles(128).update(shuffled(20_000)).normalized_rank_error(), 4) == 0.0141


@claim
def ddsketch_has_115_buckets_a_factor_of_ten() -> None:
    values = 10 ** np.random.default_rng(1).uniform(0, 6, 100_000)
    spread, decayed = sg.DDSketch().update(values), sg.DecayedQuantiles().update(values, time=0)
    buckets = len(spread._store.window(0, 0)[1]), (len(decayed.to_bytes()) - 48) / 16
    assert [round(some / 6) for some in buckets] == [115, 115]


@claim
def ddsketch_counts_tiny_magnitudes_as_zero() -> None:
    zero, least, most = (
        sg.DDSketch().update(value).quantile(0.5) for value in (2.26e-308, 2.28e-308, 1.79e308)
    )
    assert zero == 0.0 and least > 0.0 and math.isfinite(most)


@claim
def ddsketch_is_exact_for_small_whole_numbers() -> None:
    small = list(range(-49, 50))
    assert sg.DDSketch(kind="long").update(small).quantiles([at / 98 for at in range(99)]) == small
    assert round(sg.DDSketch(kind="long").update([58, 59]).quantile(0), 2) == 58.56


@claim
def a_tdigest_counts_half_of_a_value_itself() -> None:
    sketch = sg.TDigest().update([1, 2, 3])
    assert (sketch.rank(2), sketch.rank(3)) == (0.5, 1.0)


@claim
def count_min_has_these_sizes_and_corners() -> None:
    assert len(sg.CountMin().update(np.arange(10_000)).to_spark()) == 112_076
    for seed in (0, 7, -5):
        assert sg.CountMin(seed=seed).update(5).estimate(5 - 2**63) == 1
    rows = np.random.default_rng(1).zipf(1.2, 20_000) % 500
    plain, closer = (sg.CountMin(0.02, conservative=how).update(rows) for how in (False, True))
    assert (closer.estimates(range(500)) <= plain.estimates(range(500))).all()


@claim
def count_mins_joins_are_too_large_by_no_more_than_said() -> None:
    draw, missed = np.random.default_rng(1), 0
    for seed in range(40):
        one, other = (draw.zipf(1.3, 2000) % 300 for _ in range(2))
        exact = int(np.bincount(one, minlength=300) @ np.bincount(other, minlength=300))
        left, right = (sg.CountMin(0.01, 0.9, seed).update(rows) for rows in (one, other))
        join = left.inner_product(right)
        assert join >= exact
        missed += join - exact > left.eps * 2000 * 2000
    assert missed <= 8


@claim
def frequent_items_have_these_sizes_and_errors() -> None:
    one, other = sg.FrequentItems(64).update(range(10_000)), sg.FrequentItems(64).update(range(5_000, 30_000))
    assert len(one.merge(other)) <= 48 and one.error <= 2.7 / 64 * one.weight
    assert 49_000 < len(sg.FrequentItems().update(range(3072)).to_bytes()) < 50_000
    rest, added = sg.FrequentItems(64), 0
    for part in np.random.default_rng(1).integers(0, 3000, (20, 1000)):
        rest.update(part).delete(part[:500])
        added += 1000
    assert rest.error <= 3.5 / 64 * added and rest.weight == added // 2


@claim
def heavy_hitters_miss_what_they_say() -> None:
    hitters = sg.HeavyHitters(3).update(np.random.default_rng(1).zipf(1.5, 5000) % 500)
    assert len(hitters._held) == 12 and hitters.missed == min(hitters._held.values())


@claim
def filters_take_these_bits() -> None:
    for fpp, blocked, classic in ((0.01, 10.5, 9.6), (0.001, 16.9, 14.4)):
        filters = sg.Bloom(100_000, fpp), sg.Bloom(100_000, fpp, layout="spark_v1")
        sizes = [round(8 * len(one.to_bytes()) / 100_000, 1) for one in filters]
        assert sizes == [blocked, classic]
        assert round(sg.SlidingBloom(100_000, fpp, window=60)._cells.nbytes / 100_000, 1) == blocked


@claim
def a_sliding_filter_says_when_a_value_was_last_seen() -> None:
    times = np.arange(500) * 200_000
    seen = sg.SlidingBloom(1000, window=128.0).update(range(500), time=times).last_seen(range(500))
    after = np.array(seen.cast("int64")) - times
    assert after.min() >= 0 and after.max() <= 1_000_000


@claim
def sketches_of_sets_have_the_lg_k_they_say() -> None:
    ten, eight = sg.Theta(10).update(range(9)), sg.Theta(8).update(range(3))
    assert [(ten | eight).lg_k, (ten & eight).lg_k, (ten - eight).lg_k, (eight - ten).lg_k] == [8, 8, 10, 8]
    assert [(ten | sg.Theta(8)).lg_k, (sg.Theta(10) | eight).lg_k] == [10, 8]


@claim
def distinct_counters_have_these_sizes_and_errors() -> None:
    few, many = np.arange(int(0.09 * 4096)), np.arange(200_000)
    assert abs(sg.HLL().update(few).estimate() / len(few) - 1) < 0.00005
    sketch = sg.HLL().update(many)
    compact = sketch.to_bytes("hll_4")
    assert sg.HLL.from_bytes(compact).estimate() == sketch.estimate()
    assert 0.5 <= len(compact) / len(sketch.to_bytes()) < 0.52
    assert 0.58 < len(CPC(11).update(many).to_bytes()) / len(compact) < 0.63  # both are 1.3 % off
    for lg_k, n in ((4, 7), (12, 127)):
        assert round(sg.SlidingHLL(lg_k, window=10).update(range(n), time=0).estimate(), 4) == n


@claim
def totals_are_within_their_bounds() -> None:
    sketch = Tuple(8).update(np.arange(5000), value=np.arange(5000.0))
    (total,) = sketch.totals(3)
    assert total.lower <= np.arange(5000).sum() <= total.upper


@claim
def decay_is_what_it_is_said_to_be() -> None:
    times = np.arange(300_000) * 100_000
    count = sg.DecayedCount(600.0).update(range(300_000), time=times)
    assert math.isclose(count.estimate(), 10 * 600 / math.log(2), rel_tol=0.001)
    late = sg.DecayedQuantiles(1.0).update(np.full(10_000, 5.0), time=0).update(9.0, time=1_074_000_000)
    assert abs(late.quantile(0.001) / 9.0 - 1) <= 0.01
    samples = (sg.DecayedReservoir(50, 100.0, seed) for seed in range(40))
    rows = [one.update(range(2000), time=times[:2000] * 10).values().to_numpy() for one in samples]
    assert 0.45 < np.mean(np.array(rows) >= 1900) < 0.55


@claim
def samples_hold_as_many_rows_as_they_say() -> None:
    times = np.arange(5000) * 1000
    held = [len(sg.SlidingWindowSample(20, 1e6, s).update(times, time=times).to_columns()) for s in range(20)]
    assert abs(np.mean(held) / (20 * (1 + math.log(5000 / 20))) - 1) < 0.1
    for keys, k, items in ((200, 1, 50), (20, 2, 40)):
        sample = sg.StratifiedReservoir(5, capacity=50, seed=1).update(
            np.arange(3000), key=np.arange(3000) % keys
        )
        assert (sample.k, len(sample)) == (k, items)
    near = 2 * math.sqrt(90) + 1
    rows = [len(sg.BernoulliSample(0.1, s).update(range(1000))) for s in range(200)]
    users = [np.arange(1000 * s, 1000 * s + 1000) for s in range(200)]
    hashed = [len(sg.HashSample(0.1).update(some, key=some)) for some in users]
    for sizes in (rows, hashed):
        assert np.mean([abs(size - 100) <= near for size in sizes]) >= 0.93


@claim
def small_groups_take_little_memory() -> None:
    for name, values, most in (
        ("distinct", 7, 2 * 48),
        ("distinct", 24, 2 * 144),
        ("membership", 10, 2 * 160),
    ):
        groups = REGISTRY[name].groups_class()(5000)
        groups.update(np.repeat(np.arange(5000), values), np.arange(5000 * values))
        assert held_by(vars(groups), set()) / 5000 <= most, (name, values)


def held_by(held: Any, seen: set[int]) -> int:
    """Bytes of all arrays in it."""
    if id(held) in seen:
        return 0
    seen.add(id(held))
    if isinstance(held, np.ndarray):
        return held.nbytes
    if isinstance(held, (list, tuple, dict)):
        return sum(held_by(one, seen) for one in (held.values() if isinstance(held, dict) else held))
    return held_by(vars(held), seen) if hasattr(held, "__dict__") else 0


def test_docstrings_are_true() -> None:
    wrong = []
    for check in CLAIMS:
        try:
            check()
        except Exception as error:
            wrong.append("".join(traceback.format_exception(error)[-2:]))
    assert not wrong, "\n".join(wrong)
    assert len(CLAIMS) > 20

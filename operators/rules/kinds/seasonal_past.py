"""Each key's usual values by time of day and week, and how far they deviated on earlier days.

A key's memory is a place in arrays of fixed size, 3 kB in all, however long its history:

- the interval between rows, as a running median;
- its level, and its season: the mean and the mean deviation of each half hour of the day, and the mean of
  each half hour of the week. Values are clipped to four usual errors from the expected value, so that an
  event teaches little;
- for three lengths of time (one row, half an hour, three hours), the exponentially weighted mean of values
  minus their season, and its own longer past, with which it is compared;
- for each length, the largest deviation on each of the last 35 days that had rows.

Of no season, the day's and the week's, the one with the best recent predictions is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....sketches.core.compilation.jit import kernel

LENGTHS_S = np.array([0.0, 1_800.0, 10_800.0])
"""The lengths of time for which deviations are measured, in seconds; 0 is a single row."""
LEAST_ROWS = np.array([1.0, 6.0, 36.0])
"""The least number of rows in each length, if they are far apart."""
DAYS = 35
"""The number of days whose largest deviations are remembered."""
WARM_DAYS = 3
"""The number of midnights that must have passed before anything is reported. The first day, which shows no
season, has no deviations."""

SLOTS = 48
_TAUGHT = 1.25
"""A deviation past the limit is remembered as at most this many limits, so that the next event is detected as
well."""
_FELT = 10.0
"""A row moves means by at most this many of the largest deviations."""
_NEVER = np.int64(np.iinfo(np.int64).min)
_LENGTHS = len(LENGTHS_S)

UNKNOWN: dict[str, Any] = {
    "rows": np.int64(0),
    "last": _NEVER,
    "interval": np.float64(0),
    "level": np.float64(0),
    "errors": np.zeros(3),
    "spread": np.float64(0),
    "day_mean": np.zeros(SLOTS, np.float32),
    "day_spread": np.zeros(SLOTS, np.float32),
    "day_rows": np.zeros(SLOTS, np.uint8),
    "week_mean": np.zeros(7 * SLOTS, np.float32),
    "week_rows": np.zeros(7 * SLOTS, np.uint8),
    "near": np.zeros(_LENGTHS),
    "far": np.zeros(_LENGTHS),
    "day": _NEVER,
    "days": np.int64(0),
    "largest": np.zeros((_LENGTHS, DAYS + 1), np.float32),
}
"""The columns of an unknown key (`KeyColumns`)."""

DEVIATION = ("times", "length", "expected", "deviation", "before", "days", "season")
"""The measurements of each row: its deviation divided by the largest earlier one, the length in seconds (0: a
single row), the expected value, the deviation and the largest earlier one in the value's unit, the number of
days remembered, and the season used: none, the day's or the week's."""


def measure_deviations(
    columns: Any, places: np.ndarray, local_us: np.ndarray, values: np.ndarray, warm: int, factor: float
) -> np.ndarray:
    """Compare rows with their keys' pasts, then learn them; returns DEVIATION of each, in columns of doubles.

    `columns` has the arrays of UNKNOWN by name; a key's rows are ordered by time, in the key's local time.
    For each row, the length with the largest deviation is returned. `times` is NaN until a key has `warm`
    rows and three midnights behind it.

    >>> from streamgauge.operators.rules.evaluation.key_columns import KeyColumns
    >>> memory, hour = KeyColumns(UNKNOWN), 3_600_000_000
    >>> times = np.arange(400) * hour
    >>> values = np.where(np.arange(400) == 399, 30.0, np.sin(np.arange(400) / 24 * 2 * np.pi))
    >>> deviations = measure_deviations(memory, memory.add(["a"] * 400), times, values, 300, 1.2)
    >>> bool(deviations[0][-1] > 2), bool((deviations[0][300:-1] < 1.2).all())
    (True, True)
    """
    measured = np.full((len(DEVIATION), len(places)), np.nan)
    arrays = [columns[name] for name in UNKNOWN]
    _hold_and_learn(
        places, local_us, values, warm, _TAUGHT * factor, LENGTHS_S, LEAST_ROWS, measured, *arrays
    )
    return measured


@kernel
def _hold_and_learn(
    places, times, values, warm, factor, lengths, least_rows, measured,
    rows, last, interval, level, errors, spread, day_mean, day_spread, day_rows, week_mean, week_rows,
    near, far, day, days, largest,
):  # fmt: skip
    """Compare each row, in order, with what was known before it."""
    day_s, slots = 86_400.0, day_mean.shape[1]
    never = np.int64(-9223372036854775808)
    for i in range(len(places)):
        key = places[i]
        # Such a large value would be infinite as a float32 of the season.
        value = min(max(values[i], -1e30), 1e30)
        seconds = times[i] // 1_000_000
        slot = (seconds % 86_400) // (86_400 // slots)
        today = seconds // 86_400
        slot_of_week = today % 7 * slots + slot
        rows[key] += 1
        n = rows[key]
        if n == 1:
            level[key] = value
            day[key] = today
            near[key, :] = value
            far[key, :] = value
        elif times[i] > last[key]:
            gap = (times[i] - last[key]) / 1e6
            if interval[key] == 0.0:
                interval[key] = gap
            # A running median: moves towards each gap by a share that falls to one in a hundred.
            interval[key] *= np.exp(max(0.01, 1.0 / n) * np.sign(gap - interval[key]))
        if last[key] == never or times[i] > last[key]:
            last[key] = times[i]
        if today > day[key]:
            day[key] = today
            days[key] += 1
            for k in range(len(lengths)):
                before = 0.0
                for j in range(1, largest.shape[2]):
                    before = max(before, np.float64(largest[key, k, j]))
                # An event is remembered as little more than the limit, so that the next one is detected as
                # well.
                if days[key] > WARM_DAYS and before > 0.0:
                    largest[key, k, 0] = min(np.float64(largest[key, k, 0]), before * factor)
                for j in range(largest.shape[2] - 1, 0, -1):
                    largest[key, k, j] = largest[key, k, j - 1]
                largest[key, k, 0] = 0.0
        step = max(interval[key], 1e-6)

        of_day = np.float64(day_mean[key, slot])
        of_week = np.float64(week_mean[key, slot_of_week]) if week_rows[key, slot_of_week] else of_day
        season, which = 0.0, 0
        if errors[key, 1] < 0.95 * errors[key, 0]:
            season, which = of_day, 1
        if errors[key, 2] < 0.95 * min(errors[key, 0], errors[key, 1]):
            season, which = of_week, 2
        rest = value - season
        # Halfway between the plain deviation and the deviation in usual deviations of its half hour.
        scale = 1.0
        if day_rows[key, slot] > 2 and spread[key] > 0.0:
            scale = min(max(np.sqrt(day_spread[key, slot] / spread[key]), 0.3), 3.0)

        speaks = days[key] >= WARM_DAYS and n >= warm
        most = -1.0
        smallest = max(1e-9 * abs(level[key]), 1e-30)  # the rounding error of a zero
        felt = rest
        for k in range(len(lengths)):
            rows_of_length = max(lengths[k] / step, least_rows[k])
            weight = max(1.0 / rows_of_length, 1.0 / n)
            # The mean of a single row is its value: a difference would keep the rounding error of a huge one.
            near[key, k] = felt if weight >= 1.0 else near[key, k] + weight * (felt - near[key, k])
            deviation = near[key, k] - far[key, k]
            size = abs(deviation) / scale
            past = smallest
            for j in range(1, largest.shape[2]):
                past = max(past, largest[key, k, j])
            grown = max(past, np.float64(largest[key, k, 0]))
            # A mean of many rows rises little from row to row, and so does today's largest deviation, which
            # therefore counts as little more than those of the days before.
            before = min(grown, past * factor) if past > smallest else grown
            if speaks:
                if size / before > most:
                    most = size / before
                    if most > factor / _TAUGHT:
                        before = past if past > smallest else before
                    measured[0, i] = min(size / before, 1e6)
                    measured[1, i] = rows_of_length * step if k else 0.0
                    measured[2, i] = far[key, k] + season
                    measured[3, i] = deviation
                    measured[4, i] = before * scale
                    measured[5, i] = min(days[key], largest.shape[2] - 1)
                    measured[6, i] = which
                largest[key, k, 0] = max(np.float64(largest[key, k, 0]), min(size, grown * factor))
                if k == 0:
                    # One broken value, such as 65,535, must not move all means. A new level is learned after
                    # some rows, because each of them raises the largest deviation.
                    most_felt = _FELT * grown * scale
                    felt = far[key, 0] + min(max(rest - far[key, 0], -most_felt), most_felt)
            elif days[key] >= 1 and n > 2 * rows_of_length:
                largest[key, k, 0] = max(np.float64(largest[key, k, 0]), size)
        for k in range(len(lengths)):
            rows_of_past = 24.0 * max(lengths[k] / step, least_rows[k])
            far[key, k] += max(1.0 / rows_of_past, 1.0 / n) * (felt - far[key, k])

        above = felt + season - level[key]
        if day_rows[key, slot]:
            weight = max(step / day_s, 1.0 / n)
            errors[key, 0] += weight * (abs(above) - errors[key, 0])
            errors[key, 1] += weight * (abs(above - of_day) - errors[key, 1])
            errors[key, 2] += weight * (abs(above - of_week) - errors[key, 2])
        learned = above
        if day_rows[key, slot] >= 3:
            usual = 4.0 * errors[key, 0]
            learned = of_day + min(max(above - of_day, -usual), usual)
        apart = abs(learned - of_day)
        day_spread[key, slot] += max(0.025, 1.0 / (day_rows[key, slot] + 1)) * (apart - day_spread[key, slot])
        spread[key] += max(step / (7 * day_s), 1.0 / n) * (apart - spread[key])
        day_rows[key, slot] = min(day_rows[key, slot] + 1, 250)
        week_rows[key, slot_of_week] = min(week_rows[key, slot_of_week] + 1, 250)
        day_mean[key, slot] += max(0.1, 1.0 / day_rows[key, slot]) * (learned - day_mean[key, slot])
        weight = max(0.3, 1.0 / week_rows[key, slot_of_week])
        week_mean[key, slot_of_week] += weight * (learned - week_mean[key, slot_of_week])
        level[key] += max(step / day_s, 1.0 / n) * above

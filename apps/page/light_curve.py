"""A light curve as SVG: magnitudes of one object, by band, with errors and upper limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

COLOURS = 8
"""The number of colours for bands, the classes `series-0` to `series-7`."""

_WIDTH, _HEIGHT = 720.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 12.0, 12.0, 42.0
_DAY = 86_400.0
_STEPS = (1.0, 2.0, 5.0, 10.0)
_MOST_TICKS = 8


@dataclass(frozen=True)
class Look:
    """One observation of an object: a magnitude with its error, or an upper limit.

    `time` is in seconds since 1970, UTC. A `forced` magnitude was measured at a given position, whether the
    object was detected or not.
    """

    time: float
    band: str
    magnitude: float | None
    error: float | None = None
    limit: float | None = None
    forced: bool = False

    @property
    def shown(self) -> float | None:
        """The magnitude at which it is drawn; None without one."""
        return self.limit if self.magnitude is None else self.magnitude


def bands_of(looks: Sequence[Look]) -> list[str]:
    """Return the bands in the order of their colours.

    >>> bands_of([Look(0, "r", 19.0), Look(0, "g", 19.5), Look(1, "r", 18.5)])
    ['g', 'r']
    """
    return sorted({look.band for look in looks})


def light_curve(looks: Sequence[Look], title: str) -> str:
    """Draw observations, the brightest on top; return a note instead if nothing was measured."""
    drawn = [look for look in looks if look.shown is not None]
    if not drawn:
        return '<p class="note">This object has no measurements.</p>'
    axes = _Axes.of(drawn)
    colours = {band: f"series-{at % COLOURS}" for at, band in enumerate(bands_of(drawn))}
    marks = "".join(_mark(look, axes, colours[look.band]) for look in drawn)
    said = escape(f"{title}: {len(drawn)} looks, magnitudes growing downwards")
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{said}">'
        f"{''.join(_grid(axes))}{marks}</svg>"
    )


@dataclass(frozen=True)
class _Axes:
    """Converts times and magnitudes to positions in the picture."""

    since: float
    until: float
    brightest: float
    faintest: float

    @classmethod
    def of(cls, looks: Sequence[Look]) -> _Axes:
        times = [look.time for look in looks]
        edges = [
            edge for look in looks for sign in (-1, 1) for edge in (_at(look) + sign * (look.error or 0.0),)
        ]
        wide = max(times) - min(times) or _DAY
        high = max(edges) - min(edges) or 1.0
        return cls(
            min(times) - wide * 0.03,
            max(times) + wide * 0.03,
            min(edges) - high * 0.07,
            max(edges) + high * 0.07,
        )

    def x(self, time: float) -> float:
        return _LEFT + (time - self.since) / (self.until - self.since) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, magnitude: float) -> float:
        share = (magnitude - self.brightest) / (self.faintest - self.brightest)
        return _TOP + share * (_HEIGHT - _TOP - _BOTTOM)


def _at(look: Look) -> float:
    assert look.shown is not None
    return look.shown


def _mark(look: Look, axes: _Axes, colour: str) -> str:
    x, y = axes.x(look.time), axes.y(_at(look))
    said = f"<title>{escape(words(look))}</title>"
    if look.magnitude is None:
        shape = f'<path class="limit" d="M{x - 4:.1f} {y:.1f}h8l-4 6.5z"/>'
        return f'<g class="{colour}">{said}{shape}</g>'
    error = look.error or 0.0
    top, bottom = axes.y(look.magnitude - error), axes.y(look.magnitude + error)
    ends = f"M{x - 3:.1f} {top:.1f}h6m-6 {bottom - top:.1f}h6"
    bar = f'<path class="error" d="M{x:.1f} {top:.1f}V{bottom:.1f}{ends}"/>'
    kind = "forced" if look.forced else "seen"
    return f'<g class="{colour}">{said}{bar}<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/></g>'


def words(look: Look) -> str:
    """Describe an observation in one line.

    >>> words(Look(0, "g", None, limit=20.5))
    '1970-01-01 00:00:00 g fainter than 20.50'
    """
    at = f"{datetime.fromtimestamp(look.time, UTC):%Y-%m-%d %H:%M:%S} {look.band}"
    if look.magnitude is None:
        return f"{at} fainter than {look.limit:.2f}" if look.limit is not None else f"{at} nothing"
    error = f" ± {look.error:.2f}" if look.error else ""
    return f"{at} {look.magnitude:.2f}{error}{', forced photometry' if look.forced else ''}"


def _grid(axes: _Axes) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for magnitude in _ticks(axes.brightest, axes.faintest, 0.01):
        y = axes.y(magnitude)
        yield f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{right:g}"/>'
        yield f'<text class="end" x="{_LEFT - 6:g}" y="{y + 4:.1f}">{magnitude:g}</text>'
    step, times = _time_ticks(axes.since, axes.until)
    for time in times:
        x = axes.x(time)
        at = datetime.fromtimestamp(time, UTC)
        yield f'<path class="grid" d="M{x:.1f} {_TOP:g}V{bottom:g}"/>'
        label = f"{at:%Y-%m-%d}" if step >= _DAY else f"{at:%m-%d %H:%M}"
        yield f'<text class="middle" x="{x:.1f}" y="{bottom + 16:g}">{label}</text>'
    yield f'<text class="end" x="{right:g}" y="{_HEIGHT - 6:g}">UTC</text>'
    yield f'<text x="2" y="{_HEIGHT - 6:g}">magnitude, the brightest on top</text>'


def _ticks(low: float, high: float, least: float) -> list[float]:
    """Return at most eight round numbers between two.

    >>> _ticks(17.8, 20.1, 0.01)
    [18.0, 18.5, 19.0, 19.5, 20.0]
    """
    wanted = max((high - low) / _MOST_TICKS, least)
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(one * power for one in _STEPS if one * power >= wanted * 0.999)
    first = math.ceil(low / step)
    return [round(number * step, 6) for number in range(first, math.floor(high / step) + 1)]


def _time_ticks(since: float, until: float) -> tuple[float, list[float]]:
    """Return at most six days, or hours of a short span, for the labels of the time axis."""
    wanted = (until - since) / 5
    hours = [3_600.0 * one for one in (1, 2, 3, 6, 12)]
    days = [_DAY * one for one in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
    step = next((one for one in (*hours, *days) if one >= wanted), days[-1])
    first = math.ceil(since / step)
    return step, [number * step for number in range(first, math.floor(until / step) + 1)]

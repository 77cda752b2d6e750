"""The panels of an app's page: each is a query of the table of one part, and a way to draw the answer.

The first arguments are the title and the name of the part. Values are named as in rules: an aggregate of the
part, such as ``"users"``, or a part of its answer, such as ``"latency.p99"``; keys are named by their
columns. Estimates are drawn with their bounds. If a part has `at`, its time is that key, and each row is a
reading.

If a key is chosen on the page, such as one sensor, panels whose part has that key show only that key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Against = Literal["share", "change", "factor"]
"""The relation of a value to another one: its share, the change from it in percent, or a multiple of it."""


@dataclass(frozen=True)
class LinesPanel:
    """A value over time, a line for each value of the key `by`, the `most` largest of them.

    With `to`, the value is shown in relation (`against`) to that one, such as errors in requests. `lower` and
    `upper` name values for a band around it, in place of an estimate's bounds, such as the lowest and the
    highest price. With `limits`, the limits of rules about the value are drawn. Times without a row are gaps.

    Sums and counts of merged windows are shown for the length of one window, so that a limit stays in place.
    With `from_first`, several lines are drawn as changes in percent from the first value of each, such as the
    prices of expensive and cheap shares; a single line is drawn as it is. `unit` replaces the % or × of
    `against`.

    >>> LinesPanel("Errors in requests", "hosts", "errors", to="requests", by="host").against
    'share'
    """

    title: str
    part: str
    value: str
    by: str = ""
    to: str = ""
    against: Against = "share"
    lower: str = ""
    upper: str = ""
    unit: str = ""
    most: int = 8
    limits: bool = True
    from_first: bool = False


@dataclass(frozen=True)
class CandlesPanel:
    """Prices of one value of the key `by` as candles: a body from `open` to `close`, wicks to both extremes.

    The part has windows of one length, which are merged into candles wide enough to be distinguished. Until a
    key is chosen on the page, the one with the largest `value` is drawn. Rising bodies are hollow, falling
    ones are filled. Windows without a row have no candle.

    >>> CandlesPanel("Candles", "minutes", by="symbol", value="volume").close
    'close'
    """

    title: str
    part: str
    by: str
    value: str
    open: str = "open"
    high: str = "high"
    low: str = "low"
    close: str = "close"
    unit: str = ""


@dataclass(frozen=True)
class SpreadPanel:
    """The distribution of values: a quantile sketch's `ranks` as a band over time, and a histogram."""

    title: str
    part: str
    value: str
    ranks: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    unit: str = ""


@dataclass(frozen=True)
class NumberPanel:
    """One number over the whole span with its bounds, all keys merged, and a sparkline.

    `to` and `against` as for `LinesPanel`.
    """

    title: str
    part: str
    value: str
    to: str = ""
    against: Against = "share"
    unit: str = ""


@dataclass(frozen=True)
class RankedPanel:
    """The `k` largest over the whole span: items of a `top_k`, or values of the key `by` ordered by `value`.

    `to` and `against` as for `LinesPanel`, such as movers: the last price as a change from the first. With
    `both_ways`, the order ignores the sign. `samples` names a sample of the same part whose values are shown
    with each item: the values of its group, or, in a stratified sample, of the item's key. With `where`, only
    groups whose keys have one of these values are ranked.
    """

    title: str
    part: str
    value: str
    by: str = ""
    to: str = ""
    against: Against = "share"
    both_ways: bool = False
    k: int = 10
    unit: str = ""
    samples: str = ""
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowsPanel:
    """A sortable table: each row is a group of the span or, with `each_window`, of one window or reading.

    `columns` are the keys and values shown, each with its heading; all of them by default. `order` is the
    initial sort column, with the largest on top if it begins with ``-``; without it, the newest are on top.
    At most `most` rows are requested, and more as the user scrolls. `units` maps columns to their units.
    `between` maps an estimate to the two values of its row between which it must lie, such as a median to the
    lowest and the highest value. For a tape of trades, use a part with `at`.
    """

    title: str
    part: str
    columns: Mapping[str, str] | tuple[str, ...] = ()
    order: str = ""
    each_window: bool = False
    most: int = 200
    units: Mapping[str, str] = field(default_factory=dict)
    between: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LightCurvePanel:
    """Magnitudes of one object over time, the brightest on top; a colour for each value of the key `band`.

    The part has `at`, and `each` is the key that identifies an object. `error` is one standard deviation. If
    `magnitude` is null, `limit` is an upper limit, drawn as a triangle that points down. If `forced` is not
    0, the magnitude was measured at a given position, and is drawn as a ring.
    """

    title: str
    part: str
    each: str
    magnitude: str
    error: str = ""
    limit: str = ""
    band: str = ""
    forced: str = ""


@dataclass(frozen=True)
class ObjectPanel(LightCurvePanel):
    """One object: its light curve beside its pictures, the known facts, and why it was reported.

    `images` are as for `ImagesPanel`, the newest of each. `facts` are values with their headings, the newest
    known ones. It has a page of its own, a single file to send to others: ``/apps/APP/objects/NAME.html``.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MapPanel:
    """Points by longitude and latitude in degrees, each a group of the part; larger with `value`.

    `longitude` and `latitude` are keys or values; `label` is the key that names a point, and clicking the
    point chooses it. On the `sky` they are right ascension and declination. Positions that are null have no
    point.
    """

    title: str
    part: str
    longitude: str
    latitude: str
    label: str
    value: str = ""
    unit: str = ""
    sky: bool = False


@dataclass(frozen=True)
class ImagesPanel:
    """Pictures of one object side by side, the newest: PNG, JPEG or GIF bytes, or base64 text of them.

    `each` is the key that identifies an object, `images` are values (`last` of a column), with their
    headings.
    """

    title: str
    part: str
    each: str
    images: Mapping[str, str]


@dataclass(frozen=True)
class FunnelPanel:
    """What remains after each of several stages: exact counts, from all to few.

    Either `stages` are counts of one part, with their headings. Or each group of the part counts what one
    stage rejected: the key `by` names the stage, or is `passed` for what passed all stages; `order` is the
    key that orders the stages, `value` is the count, and there is a funnel for each value of the key `each`.
    """

    title: str
    part: str
    stages: Mapping[str, str] = field(default_factory=dict)
    value: str = ""
    by: str = ""
    order: str = ""
    passed: str = "passed"
    each: str = ""


@dataclass(frozen=True)
class SamplesPanel:
    """Up to `most` values of a sample, such as posts or log lines as they arrived.

    For structs, all fields are shown, or only those in `fields`.
    """

    title: str
    part: str
    value: str
    fields: tuple[str, ...] = ()
    most: int = 20


Panel = (
    LinesPanel
    | CandlesPanel
    | SpreadPanel
    | NumberPanel
    | RankedPanel
    | RowsPanel
    | LightCurvePanel
    | ObjectPanel
    | MapPanel
    | ImagesPanel
    | FunnelPanel
    | SamplesPanel
)
"""Any kind of panel."""


def paths(panel: Panel) -> set[str]:
    """Return the names of all keys and values that a panel shows.

    >>> sorted(paths(FunnelPanel("Cuts", "nights", {"alerts": "all", "bright": "brighter than 19.8"})))
    ['alerts', 'bright']
    """
    columns: set[str] = set()
    for name in _NAMING:
        path = getattr(panel, name, "")
        columns |= {path.removeprefix("-")} if isinstance(path, str) else set(path)
    return columns - {""}


_NAMING = (
    *("value", "by", "to", "lower", "upper", "samples", "columns", "each", "magnitude", "error", "limit"),
    *("band", "order", "longitude", "latitude", "label", "images", "stages", "where"),
    *("forced", "facts", "open", "high", "low", "close"),
)
"""The fields with names of keys or values."""

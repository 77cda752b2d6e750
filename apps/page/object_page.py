"""A standalone page about one object, to send to colleagues: a single file without external resources."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from ...operators.rendering.names import escaped, visible_name
from ...sketches.core.version import VERSION
from ..panels import ObjectPanel
from .light_curve import COLOURS, Look, bands_of, light_curve

_UNIX_MJD = 40_587.0
_STYLE = (Path(__file__).parent / "files" / "object.css").read_text(encoding="utf-8")
STYLE_HASH = f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"
"""The hash by which a content security policy allows only the page's own style sheet."""
_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}


@dataclass(frozen=True)
class ShownObject:
    """The content of an object's page: observations, pictures as data, facts, and reports."""

    name: str
    looks: Sequence[Look]
    images: Mapping[str, str]
    facts: Mapping[str, str]
    events: Sequence[Mapping[str, Any]]

    @classmethod
    def of(
        cls,
        panel: ObjectPanel,
        at: str,
        rows: Iterable[Mapping[str, Any]],
        name: str,
        events: Sequence[Mapping[str, Any]] = (),
    ) -> ShownObject | None:
        """Make the content from rows of the panel's part, with times in `at`; None without rows.

        Pictures and facts are the latest known ones.
        """
        ordered = sorted((row for row in rows if row[at] is not None), key=lambda row: _seconds(row[at]))
        if not ordered:
            return None
        latest: dict[str, Any] = {}
        for row in ordered:
            latest |= {path: row[path] for path in (*panel.images, *panel.facts) if row.get(path) is not None}
        images = {heading: _source(latest.get(path)) for path, heading in panel.images.items()}
        facts = {
            heading: _text(latest[path])
            for path, heading in panel.facts.items()
            if latest.get(path) is not None
        }
        return cls(name, [_look(panel, at, row) for row in ordered], images, facts, events)


def object_page(shown: ShownObject, title: str) -> str:
    """Return the page: light curve, pictures, facts and reasons, with all text escaped."""
    name = escape(visible_name(shown.name))
    policy = f"default-src 'none'; img-src data:; style-src '{STYLE_HASH}'"
    pictures = "".join(_figure(heading, source, shown.name) for heading, source in shown.images.items())
    facts = "".join(
        f"<div><dt>{escape(heading)}</dt><dd>{escape(text)}</dd></div>"
        for heading, text in shown.facts.items()
    )
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{name}</title>
<style>{_STYLE}</style>
</head>
<body>
<header><h1>{name}</h1><p class="note">{escape(title)}</p></header>
<main>
{_reasons(shown.events)}
<section class="beside">
<div class="curve"><h2>Light curve</h2>{light_curve(shown.looks, shown.name)}{_legend(shown.looks)}</div>
<div class="pictures"><h2>Cutouts</h2><div class="images">{pictures}</div></div>
</section>
<section><h2>What is known</h2><dl>{facts or '<div class="note">nothing</div>'}</dl></section>
<section><details><summary>All {len(shown.looks)} looks</summary>{_table(shown.looks)}</details></section>
</main>
<footer>All times are UTC. Written on {now} by streamgauge {escape(VERSION)}; this file loads nothing from
elsewhere.</footer>
</body>
</html>
"""


def _reasons(events: Sequence[Mapping[str, Any]]) -> str:
    if not events:
        return ""
    items = "".join(
        f"<li><time>{escape(_text(event['at']))}</time> <b>{escape(visible_name(event['rule']))}</b> "
        f"{escape(escaped(event['why']))}</li>"
        for event in sorted(events, key=lambda event: str(event["at"]), reverse=True)
    )
    return f'<section><h2>Why it was reported</h2><ul class="reasons">{items}</ul></section>'


def _legend(looks: Sequence[Look]) -> str:
    entries = "".join(
        f'<span><i class="swatch series-{at % COLOURS}"></i>{escape(escaped(band)) or "all bands"}</span>'
        for at, band in enumerate(bands_of([look for look in looks if look.shown is not None]))
    )
    limits = "<span>▽ fainter than this</span>" if any(look.magnitude is None for look in looks) else ""
    forced = "<span>○ forced photometry</span>" if any(look.forced for look in looks) else ""
    return f'<p class="legend">{entries}{limits}{forced}</p>'


def _figure(heading: str, source: str, name: str) -> str:
    picture = (
        f'<img src="{source}" alt="{escape(f"{heading} of {visible_name(name)}")}">'
        if source
        else '<div class="none">no picture</div>'
    )
    return f"<figure>{picture}<figcaption>{escape(heading)}</figcaption></figure>"


def _table(looks: Sequence[Look]) -> str:
    heads = ("time", "MJD", "band", "magnitude", "error", "5σ limit", "")
    rows = "".join(f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in _cells(look))}</tr>" for look in looks)
    return (
        f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _cells(look: Look) -> tuple[str, ...]:
    figures = (look.magnitude, look.error, look.limit)
    return (
        f"{datetime.fromtimestamp(look.time, UTC):%Y-%m-%d %H:%M:%S}",
        f"{_UNIX_MJD + look.time / 86_400:.5f}",
        escaped(look.band),
        *("" if figure is None else f"{figure:.3f}" for figure in figures),
        "forced" if look.forced else "",
    )


def _look(panel: ObjectPanel, at: str, row: Mapping[str, Any]) -> Look:
    band = row.get(panel.band) if panel.band else None
    magnitude, error, limit = (_number(row.get(path)) for path in (panel.magnitude, panel.error, panel.limit))
    forced = bool(panel.forced and row.get(panel.forced))
    return Look(_seconds(row[at]), "" if band is None else str(band), magnitude, error, limit, forced)


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("estimate", value.get("value"))
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _seconds(at: Any) -> float:
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _text(value: Any) -> str:
    """Format a fact for people.

    >>> _text(19.870001), _text(185.7288512), _text("2026-01-01T00:00:05+00:00")
    ('19.87', '185.72885', '2026-01-01 00:00:05')
    """
    if isinstance(value, float):
        return f"{value:.5f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 else f"{value:.4g}"
    text = str(value)
    if len(text) > 18 and text[4:5] == text[7:8] == "-" and text[10:11] == "T":
        return text[:19].replace("T", " ")
    return escaped(text)


def _source(value: Any) -> str:
    """Return a picture's data URL, from bytes or base64; empty for anything else."""
    if isinstance(value, str):
        try:
            value = base64.b64decode(value, validate=True)
        except ValueError:
            return ""
    if not isinstance(value, bytes):
        return ""
    kind = next((kind for begin, kind in _KINDS.items() if value.startswith(begin)), None)
    return f"data:image/{kind};base64,{base64.b64encode(value).decode()}" if kind else ""

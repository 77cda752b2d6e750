"""The constellations on the page's sky maps, made from d3-celestial's lines.

``npm pack d3-celestial@0.7.35``, unpack it, and ``python -m streamgauge.apps.page.constellations
data/constellations.lines.json LICENSE`` in its folder writes `files/constellations.js` again. d3-celestial is
under the BSD licence, which the file repeats.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from .coastlines import packed

FILE = Path(__file__).parent / "files" / "constellations.js"
_HEAD = """\
// The lines of all constellations, a stroke a line: right ascension and declination in hundredths of a
// degree, each as the difference from the one before. A stroke that crosses 12 hours continues beyond 180.
// Made from d3-celestial's constellations.lines.json (by Olaf Frohn, version 0.7.35), whose licence
// follows, by apps/page/constellations.py, which says how.
//
"""


def lines_of(figures: Mapping[str, Any]) -> Iterator[list[tuple[float, float]]]:
    """Return the lines of a GeoJSON's `MultiLineString` features, in degrees, without jumps of a full turn.

    >>> list(lines_of({"features": [{"geometry": {"coordinates": [[[179, 5], [-179, 6]]]}}]}))
    [[(179, 5), (181, 6)]]
    """
    for feature in figures["features"]:
        for stroke in feature["geometry"]["coordinates"]:
            points = [(stroke[0][0], stroke[0][1])]
            for x, y in stroke[1:]:
                points.append((x - 360 * round((x - points[-1][0]) / 360), y))
            yield points


def module(figures: Mapping[str, Any], licence: str) -> str:
    """Return the text of `files/constellations.js`."""
    paragraphs = (
        wrap(line, 110, initial_indent="// ", subsequent_indent="// ") for line in licence.splitlines()
    )
    notice = "\n".join("\n".join(lines or ["//"]) for lines in paragraphs)
    strokes = "\n".join(packed(line) for line in lines_of(figures))
    return f"{_HEAD}{notice}\n\nexport const LINES = `\n{strokes}`;\n"


if __name__ == "__main__":
    FILE.write_text(module(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]).read_text()))

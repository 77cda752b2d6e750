"""The site: lines of code fit into its column, so that no block has to be scrolled sideways."""

from __future__ import annotations

import re
from pathlib import Path

from .cases import each

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")),
)
CSS = (ROOT / "docs" / "stylesheets" / "site.css").read_text()
WINDOW = 70
"""The width of a window of 1,400 pixels, in rem: the theme's rem is 20 pixels."""

SIDEBAR, MARGIN, PADDING = 12.1, 1.2, 1.1764705882
"""The theme's sidebars and the margins beside its text, both in rem; a block's padding, in its own em."""

CHARACTER = 0.602
"""The width of a character of DejaVu Sans Mono, in em: no usual font is wider."""

FENCE = re.compile(r"^(?P<indent> *)```\w*\n(?P<code>.*?)^ *```", re.M | re.S)


def columns(css: str) -> int:
    """How many characters a line of code may have.

    >>> columns(".md-grid { max-width: 61rem; } .md-typeset pre > code { font-size: .68rem; }")
    80
    """
    (grid,) = re.findall(r"\.md-grid \{ max-width: ([\d.]+)rem; \}", css)
    (size,) = (float(text) for text in re.findall(r"pre > code \{ font-size: ([\d.]+)rem; \}", css))
    column = min(float(grid), WINDOW) - 2 * SIDEBAR - 2 * MARGIN - 2 * PADDING * size
    return int(column / (CHARACTER * size))


@each("page", PAGES)
def test_lines_of_code_fit_into_the_column(page: str) -> None:
    limit = columns(CSS)
    text = (ROOT / page).read_text()
    wide = [
        line
        for block in FENCE.finditer(text)
        for line in (line.removeprefix(block["indent"]) for line in block["code"].splitlines())
        # A payload in hexadecimal stays whole.
        if len(line) > limit and max(map(len, line.split())) < limit / 2
    ]
    assert not wide, f"at most {limit} characters fit: {wide}"


def test_the_column_is_the_one_that_the_style_sheet_promises() -> None:
    assert f"up to {columns(CSS)} characters" in CSS

"""The live view: it fits the terminal, shows everything, and no text of a stranger steers it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.apps.trending.answers import Tag
from streamgauge.apps.trending.exact import Exact
from streamgauge.apps.trending.summary import Summary
from streamgauge.apps.trending.view import View, bar

from .posts import STREAM, shown, snapshot


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (120, 30), (200, 60)])
@pytest.mark.parametrize("n_windows", [0, 1, 9])
def test_the_view_fits_the_terminal_and_shows_everything(width: int, height: int, n_windows: int) -> None:
    lines = shown(View(snapshot(n_windows)), width, height).splitlines()
    text = "\n".join(lines)
    assert len(lines) <= height
    equation = "9,000,000 read = 8,000,000 counted + 900,000 filtered + 90,000 late + 10,000 dead"
    assert (equation if width > 90 else equation.replace(",", "")) in text and "✓" in text
    assert "123,456 posts/s" in text and "01:15 of 01:30" in text
    if n_windows:
        assert "99,000–100,500" in text and "640,000–670,000" in text
    if width >= 120 and n_windows:
        assert "first post" in text


def test_texts_of_strangers_steer_nothing() -> None:
    made = snapshot(1)
    nasty = "\x1b[2J[red]tag[/red]\N{RIGHT-TO-LEFT OVERRIDE}\a"
    window = replace(made.windows[0], tags=(Tag(1, 1, 1, nasty),), sample=(f"so proud ❤️ {nasty}",))
    summary = Summary.of("Spark", made.account, 30.0, [window], Exact(STREAM))
    for width, what in ((120, View(replace(made, windows=[window]))), (80, summary)):
        text = shown(what, width, 30)
        assert "#[2J[red]tag[/red]" in text
        assert not set(text) & {"\x1b", "\a", "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{VARIATION SELECTOR-16}"}


def test_a_bar_is_solid_to_the_lower_bound_and_shaded_to_the_upper() -> None:
    assert bar(Tag(60, 50, 100, "a"), 100, 20).plain == "█" * 10 + "░" * 10
    assert bar(Tag(50, 50, 50, "a"), 100, 20).plain == "█" * 10
    assert bar(Tag(1, 1, 1, "a"), 1000, 10).plain == "▏"

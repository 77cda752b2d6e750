"""Light curves as SVG: the brightest on top, errors, limits, forced photometry, by band."""

from __future__ import annotations

import math
import random
from xml.etree import ElementTree

from streamgauge.apps.page.light_curve import Look, light_curve

HOSTILE = '"><script>alert(1)</script>'
DAY = 86_400.0


def drawn(looks: list[Look], title: str = "SN") -> ElementTree.Element:
    """The picture, which is well-formed."""
    return ElementTree.fromstring(light_curve(looks, title))


def test_the_brightest_is_on_top_and_the_latest_on_the_right() -> None:
    looks = [Look(0, "g", 19.0, 0.1), Look(DAY, "g", 18.0, 0.1), Look(2 * DAY, "r", None, limit=20.0)]
    picture = drawn(looks)
    first, second = (
        (float(circle.get("cx") or 0), float(circle.get("cy") or 0)) for circle in picture.iter("circle")
    )
    assert first[0] < second[0] and first[1] > second[1]
    groups = [group.get("class") for group in picture.iter("g")]
    assert groups == ["series-0", "series-0", "series-1"]
    kinds = [path.get("class") for path in picture.iter("path") if path.get("class") != "grid"]
    assert kinds == ["error", "error", "limit"]
    assert "fainter than 20.00" in "".join(picture.itertext()) and "18.00 ± 0.10" in "".join(
        picture.itertext()
    )


def test_forced_photometry_is_a_ring() -> None:
    picture = drawn([Look(0, "g", 19.0, 0.1, forced=True), Look(DAY, "g", 18.0)])
    assert [circle.get("class") for circle in picture.iter("circle")] == ["forced", "seen"]


def test_whatever_was_measured_lies_within_the_picture() -> None:
    dice = random.Random(4)
    for _ in range(100):
        span = 10 ** dice.uniform(-3, 4)
        looks = [
            Look(
                dice.uniform(0, span) * DAY,
                dice.choice("gri"),
                dice.gauss(19, dice.choice([0, 0.01, 3])),
                0.2,
            )
            for _ in range(dice.randrange(1, 9))
        ]
        picture = drawn(looks)
        places = [
            float(circle.get(name) or "nan") for circle in picture.iter("circle") for name in ("cx", "cy")
        ]
        assert all(math.isfinite(place) and 0 <= place <= 720 for place in places)
        labels = [text.text for text in picture.iter("text")]
        assert len(labels) <= 2 + 10 + 7 and len(set(labels)) == len(labels)


def test_an_object_of_which_nothing_was_measured_says_so() -> None:
    assert "no measurements" in light_curve([Look(0, "g", None)], "SN")


def test_names_stay_text() -> None:
    text = light_curve([Look(0, HOSTILE, 19.0)], HOSTILE)
    assert "<script" not in text and ElementTree.fromstring(text).get("aria-label", "").startswith(HOSTILE)

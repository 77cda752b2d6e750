"""An object's page: one file, whole, that loads nothing, with every text of others as text."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from streamgauge.apps.page.object_page import STYLE_HASH, ShownObject, object_page
from streamgauge.apps.panels import ObjectPanel

from ...queries.server.http.served import TOKEN
from .shown import HOSTILE, START, gray, nights
from .test_routes import responses

PANEL = ObjectPanel(
    "Object", "objects", "object", "mag", "error", "limit", "band", "forced",
    images={"stamp": "science", "other": "template"}, facts={"host": "nearest host", "ra": "RA (°)"},
)  # fmt: skip
PNG = base64.b64decode(gray(1))


def rows(**more: Any) -> list[dict[str, Any]]:
    first = {"at": START, "band": "g", "mag": None, "error": None, "limit": 20.5, "forced": 0, "stamp": PNG}
    later = {
        "at": START + timedelta(days=1),
        "band": "g",
        "mag": 19.25,
        "error": 0.1,
        "limit": 20.4,
        "forced": 1,
    }
    made = [{**first, "host": None}, {**later, "stamp": None, "host": "M 100", "ra": 185.728851}]
    return [{**row, **more} for row in made]


class Parsed(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page(given: Sequence[dict[str, Any]], name: str = "SN1", events: Any = ()) -> str:
    one = ShownObject.of(PANEL, "at", given, name, events)
    assert one is not None
    return object_page(one, "Candidates")


def test_it_has_the_curve_pictures_facts_and_reasons() -> None:
    events = [{"at": "2026-01-01T00:00:05+00:00", "rule": "candidate", "why": "g 19.25, below 19.8"}]
    html = page(rows(), events=events)
    text = Parsed(html).text
    for said in (
        "SN1",
        "M 100",
        "185.72885",
        "2026-01-01 00:00:05",
        "g 19.25, below 19.8",
        "fainter than 20.50",
    ):
        assert said in text
    assert "61041.00000" in text and "forced photometry" in text  # START as a Modified Julian Date
    # The picture of the earlier row, as the later one has none; of the other there is none at all.
    assert f'src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in html and "no picture" in text


def test_it_loads_nothing_and_runs_nothing() -> None:
    html = page(rows(host=HOSTILE, band=HOSTILE), HOSTILE, [{"at": HOSTILE, "rule": HOSTILE, "why": HOSTILE}])
    parsed = Parsed(html)
    assert HOSTILE in parsed.text
    assert {tag for tag, _ in parsed.tags} & {
        "script",
        "link",
        "iframe",
        "object",
        "base",
        "form",
        "a",
    } == set()
    for tag, attributes in parsed.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        sources = [value for name, value in attributes.items() if name in ("src", "href", "data", "action")]
        assert all(value and value.startswith("data:image/") for value in sources)
    assert not re.search(r"url\(|@import|https?://", html.replace("http://www.w3.org", ""))
    (policy,) = [one["content"] for tag, one in parsed.tags if one.get("http-equiv")]
    assert policy and policy.startswith("default-src 'none'") and STYLE_HASH in policy


@pytest.mark.parametrize("image", [b"<svg onload=x>", "not base64 \u20ac", "PHN2Zz4=", 7, b""])
def test_what_is_no_picture_is_none(image: Any) -> None:
    html = page(rows(stamp=image))
    assert "<img" not in html and html.count("no picture") == 2


def test_an_object_without_rows_has_no_page() -> None:
    assert ShownObject.of(PANEL, "at", [], "SN1") is None


def test_a_server_has_it_and_says_what_it_does_not_have(shown: Any) -> None:
    good, none, other = responses(
        shown,
        "/apps/yard/objects/SN2.html",
        "/apps/yard/objects/SN9%2F..%2F1.html",
        "/apps/iot/objects/boiler.html",
    )
    assert good.status_code == 200 and good.headers["content-type"].startswith("text/html")
    assert STYLE_HASH in good.headers["content-security-policy"]
    seen = nights().filter(object="SN2").drop_nulls("mag")
    assert good.text.count('class="seen"') == seen.height and "data:image/png;base64," in good.text
    assert none.status_code == other.status_code == 404
    assert "no object 'SN9/../1' here" in none.json()["detail"] and "no panel" in other.json()["detail"]


def test_it_is_as_closed_as_the_tables_that_it_is_of(shown: Any) -> None:
    path = "/apps/yard/objects/SN2.html"
    assert responses(shown, path, token=TOKEN)[0].status_code == 401
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert responses(shown, path, token=TOKEN, headers=right)[0].status_code == 200


def test_alerts_of_one_key_are_those_alone(shown: Any) -> None:
    every, elm, nobody = responses(
        shown, "/apps/yard/alerts?last=500", "/apps/yard/alerts?key=elm", "/apps/yard/alerts?key=fir"
    )
    mine = [event for event in every.json()["events"] if event["key"] == "elm"]
    assert {one["id"] for one in elm.json()["events"]} == {one["id"] for one in mine} and mine
    assert nobody.json() == {"events": []}

"""The page in headless Chromium: every panel with its bounds, by keyboard, on a phone, dark, hostile text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import TOKEN, serving
from ...waiting import until
from .drawn import PHONE, PICTURES, Tab, pictures
from .shown import HOSTILE, YARD, alert, requests


@pytest.fixture
def tab(browser: Any, site: str) -> Tab:
    return Tab(browser, site)


def test_every_panel_is_drawn_and_the_browser_complains_of_nothing(tab: Tab) -> None:
    tab.open("/app/yard")
    titles = [text.split("\n")[0] for text in tab.text(".panel")]
    assert sorted(titles) == sorted(["What fired", *(panel.title for panel in YARD.panels)])
    assert not [text for text in tab.text(".panel .warning") if text]
    assert tab.complaints() == []
    # uPlot's, one for each panel over time; and pictures of one object.
    assert tab.run("return document.querySelectorAll('canvas').length") == 9
    until(lambda: tab.run("return document.querySelector('.images img').naturalWidth") == 21)
    assert tab.run("return document.querySelectorAll('.map circle').length") == 12


def test_an_object_has_its_curve_beside_its_pictures_and_a_page_to_send(tab: Tab, site: str) -> None:
    tab.open("/app/yard?key.object=SN2")
    panel = tab.panel("Object")
    assert "SN2" in panel and "RA\n123" in panel and "Dec\n-10" in panel
    boxes = tab.run(
        "return ['.curve', '.pictures'].map(one => document.querySelector('.object-panel ' + one)"
        ".getBoundingClientRect()).map(box => [box.left, box.right, box.top])"
    )
    assert boxes[0][1] <= boxes[1][0] and boxes[0][2] == boxes[1][2]
    links = "return [...document.querySelectorAll('.page-of a')].map(one => [one.href, one.download])"
    address = f"{site}/apps/yard/objects/SN2.html"
    assert tab.run(links) == [[address, ""], [address, "SN2.html"]]
    # By itself, as a colleague opens it: nothing is fetched, and nothing is complained of.
    tab.complaints()
    tab.browser.get(address)
    until(lambda: tab.run("return document.querySelector('.images img')?.naturalWidth") == 21)
    assert tab.run("return document.querySelectorAll('svg circle.seen').length") == 10
    names = "performance.getEntriesByType('resource').map(e => e.name)"
    assert tab.run(f"return {names}.filter(name => !name.startsWith('data:'))") == []
    assert tab.run("return getComputedStyle(document.querySelector('section')).borderRadius") == "6px"
    assert tab.complaints() == []


def test_the_earth_has_coasts_and_the_sky_none(tab: Tab) -> None:
    tab.open("/app/yard")
    count = "one => one.querySelectorAll('.land, .coast').length"
    assert tab.run(f"return [...document.querySelectorAll('.map')].map({count})") == [0, 2]
    assert "Natural Earth" in tab.panel("Earth") and "Natural Earth" not in tab.panel("Sky")
    script = (
        "const file = document.querySelector('script[type=module]').src.replace('main.js', 'map.js');"
        "const ring = '17000 0 500 0 0 500 -500 -500';"
        "return import(file).then(({ coasts, unpacked }) => coasts([unpacked(ring)],"
        " ([x, y]) => [x, -y], WEST, SOUTH).map(one => one.getAttribute('d')))"
    )
    near = tab.run(script.replace("WEST", "[160, 200]").replace("SOUTH", "[-10, 10]"))
    line = "170.0 0.0L175.0 0.0L175.0 -5.0L170.0 0.0"
    assert near == [f"M{line}Z", f"M{line}"]
    # Across the date line it is there from the other side, and in a town nowhere.
    over = tab.run(script.replace("WEST", "[-200, -160]").replace("SOUTH", "[-10, 10]"))
    assert over[1] == "M-190.0 0.0L-185.0 0.0L-185.0 -5.0L-190.0 0.0"
    assert tab.run(script.replace("WEST", "[160, 200]").replace("SOUTH", "[0, 1]")) == []


def test_the_sky_has_constellations_and_the_earth_none(tab: Tab) -> None:
    tab.open("/app/yard")
    count = "one => [...one.querySelectorAll('.constellations')].map(path => path.getAttribute('d'))"
    (sky,), earth = tab.run(f"return [...document.querySelectorAll('.map')].map({count})")
    assert earth == [] and "d3-celestial" in tab.panel("Sky") and "d3-celestial" not in tab.panel("Earth")
    # No stroke runs over the whole map because it crosses an edge.
    strokes = [[point.split() for point in stroke.split("L")] for stroke in sky.split("M")[1:]]
    assert len(strokes) > 88
    across = [abs(float(a[0]) - float(b[0])) for one in strokes for a, b in pairwise(one)]
    assert max(across) < 120
    script = (
        "const file = document.querySelector('script[type=module]').src.replace('main.js', 'map.js');"
        "return import(file).then(({ figures }) => figures([arguments[0]], (place) => place))"
    )
    assert tab.run(script, [[-10, 5], [10, 15]]) == "M-10.0 5.0L10.0 15.0"
    east = tab.run(script, [[170, 0], [190, 10], [170, 20]])
    assert east == "M170.0 0.0L180.0 5.0M-180.0 5.0L-170.0 10.0L-180.0 15.0M180.0 15.0L170.0 20.0"
    assert tab.run(script, [[-170, 0], [-190, 10]]) == "M-170.0 0.0L-180.0 5.0M180.0 5.0L170.0 10.0"


def test_a_map_that_is_no_larger_than_a_country_has_a_scale(tab: Tab) -> None:
    tab.open("/app/yard")
    assert tab.run("return document.querySelectorAll('.map .scale').length") == 0  # of all the earth
    script = (
        "const file = document.querySelector('script[type=module]').src.replace('main.js', 'map.js');"
        "const read = (one) => one.textContent || one.getAttribute('d');"
        "return import(file).then(({ bar }) => bar(SCALE, HIGH).map(read))"
    )
    # Pixels a degree, of 111.195 km, and degrees from south to north.
    for scale, high, said in ((1111.95, 0.3, "10 km"), (111_195, 0.004, "100 m"), (111.195, 5, "100 km")):
        drawn = tab.run(script.replace("SCALE", str(scale)).replace("HIGH", str(high)))
        assert drawn == ["M608 334V338H708V334", said]
    assert tab.run(script.replace("SCALE", "10").replace("HIGH", "40")) == []


def test_numbers_are_those_of_the_server_with_their_bounds(tab: Tab, site: str) -> None:
    tab.open("/app/yard?span=1h")
    # The newest minute still fills, so an hour needs one window more.
    assert "2026-01-01 00:14 – 01:14 (1 h)" in tab.panel("Requests")
    span = {"from": "2026-01-01T00:14"}
    requested = {**span, "every": "span", "by": ["none"], "columns": ["requests", "users", "errors"]}
    row = httpx.post(f"{site}/tables/yard.hosts/rows", json=requested, timeout=120).json()["rows"][0]
    assert f"{row['requests']:,}" in tab.panel("Requests") and "exact" in tab.panel("Requests")
    users = row["users"]
    assert f"{round(users['estimate']):,}" in tab.panel("Users")
    whole = tab.run("return document.querySelectorAll('.number-panel .bounds')[0].title")
    assert f"between {int(users['lower']):,} and " in whole and "−" in tab.panel("Users")
    assert f"({int(users['lower']):,} – " in tab.panel("Users")  # for who can't point at it
    share = 100 * row["errors"] / row["requests"]
    assert f"{share:.3f}%" in tab.panel("Errors")
    ranked = httpx.post(
        f"{site}/tables/yard.hosts/top-k", json={**span, "column": "paths", "k": 1}, timeout=120
    ).json()
    first = ranked["rows"][0]
    assert f"{first['estimate']:,}" in tab.panel("Paths")
    assert f"({first['lower']:,} – {first['upper']:,})" in tab.panel("Paths")
    assert tab.run("return document.querySelectorAll('.ranked .error').length") > 5
    assert "3 sampled" in tab.panel("Paths") and "20 sampled" in tab.panel("Hosts by users")


def test_a_funnel_shows_what_each_cut_removed(tab: Tab) -> None:
    tab.open("/app/yard?span=")
    # Of fourteen visits to each of six objects four see nothing, and five more come too early.
    for wanted in (["all", "84"], ["faint", "60 71.43% left, −24"], ["young", "30 35.71% left, −30"]):
        assert "\n".join(wanted) in tab.panel("Cuts by name")
    assert "passed" not in tab.panel("Cuts by name")


def test_hostile_text_stays_text(tab: Tab) -> None:
    tab.open("/app/yard")
    assert HOSTILE in tab.panel("Paths").replace("\n", "") or HOSTILE in tab.text(".ranked .name")
    assert tab.run("return document.title") == "yard · streamgauge"
    assert tab.run("return document.querySelectorAll('main img[onerror], main script').length") == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "''"),
        (" \t", "' \t'"),
        ("a b", "a b"),
        ("\x1b[2Jred", "\\x1b[2Jred"),
        ("a\u202egpj.exe", "a\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("日本 é 👩\u200d💻", "日本 é 👩\u200d💻"),
    ],
)
def test_nothing_in_a_name_is_overlooked(tab: Tab, given: str, expected: str) -> None:
    tab.open("/app/yard")
    assert (
        tab.run(f"return {MODULE.format('numbers')}.then(({{ text }}) => text({json.dumps(given)}))")
        == expected
    )


MODULE = "import(document.querySelector('script[type=module]').src.replace(/[^/]*$/, '{}.js'))"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("measured(142094593, 'bytes')", "142.1 MB"),
        ("measured(900, 'bytes')", "900 bytes"),
        ("measured(0.01887, 's')", "18.87 ms"),
        ("measured(21.5, '°C')", "21.5 °C"),
        ("short(3425396421, 'USD').join('|')", "3.43B|USD"),
        ("margin({value: 64, lower: 64, upper: 64})", ""),
        ("margin({value: 2763, lower: 2675, upper: 2851})", "± 88"),
        ("margin({value: 100, lower: 60, upper: 100})", "−40"),
        ("margin({value: 50, lower: 49, upper: 53}, '%')", "−1% +3%"),
    ],
)
def test_numbers_have_units_and_estimates_short_bounds(tab: Tab, call: str, expected: str) -> None:
    tab.open("/app/iot")
    assert (
        tab.run(f"return {MODULE.format('numbers')}.then(({{ measured, short, margin }}) => {call})")
        == expected
    )


def test_no_row_of_tiles_has_a_hole(tab: Tab) -> None:
    tab.open("/app/iot")
    kinds = [
        "fired",
        "rows",
        "lines",
        "ranked",
        "ranked",
        "map",
        "samples",
        "funnel",
        "lines",
        "rows",
        "spread",
    ]
    tiles_of = f"(({{ laid }}) => laid({json.dumps(kinds)}.map((kind) => ({{ kind }}))))"
    tiles = tab.run(f"return {MODULE.format('layout')}.then{tiles_of}")
    assert sorted(tile["kind"] for tile in tiles) == sorted(kinds)
    assert [tile["kind"] for tile in tiles[:2]] == ["fired", "lines"]  # a picture is beside what fired
    filled = 0
    for tile in tiles:
        filled += tile["columns"]
        assert filled <= 12
        filled %= 12
    assert filled == 0
    # As it is drawn: each tile ends where the next one or the page does.
    tab.open("/app/yard", (1400, 1000))
    ends = tab.run(
        "const rows = {}; for (const one of document.querySelectorAll('.grid > .panel')) {"
        " const box = one.getBoundingClientRect();"
        " rows[Math.round(box.top)] = Math.max(rows[Math.round(box.top)] ?? 0, box.right); }"
        "return Object.values(rows).map(Math.round)"
    )
    assert len(ends) > 3 and len(set(ends)) == 1


def test_any_span_is_merged_and_a_chosen_key_goes_through_all_panels(tab: Tab) -> None:
    tab.open("/app/yard")
    tab.click(".spans button", "all")
    until(lambda: f"{requests().height:,}" in tab.panel("Requests"))
    assert "span=" in tab.run("return location.search")
    tab.click(".alerts button.name", "elm")
    assert tab.text(".chip") == ["host: elm ✕"] and "key.host=elm" in tab.run("return location.search")
    elm = requests().filter(host="elm").height
    until(lambda: f"{elm:,}" in tab.panel("Requests") and "oak" not in tab.panel("Users by host"))
    assert "oak" in tab.panel("Hosts")
    tab.click(".chip")
    until(lambda: f"{requests().height:,}" in tab.panel("Requests"))


def test_rows_are_sorted_by_the_column_that_was_clicked(tab: Tab) -> None:
    tab.open("/app/yard?span=")

    def hosts() -> list[str]:
        return tab.text(".rows-panel tbody tr:not(.filler) td:first-child")

    by_requests = requests()["host"].value_counts(sort=True)["host"].to_list()
    assert hosts() == by_requests
    tab.run("document.querySelector('th button[data-path=requests]').click()")
    assert hosts() == by_requests[::-1]
    assert tab.run("return document.querySelectorAll('th[aria-sort=ascending]').length") == 1


def test_what_fired_is_shown_with_figures_and_rule_and_new_alerts_come_by_themselves(
    tab: Tab, shown: Any
) -> None:
    _, yard = shown[1]
    tab.open("/app/yard")
    (alerts,) = (text for text in tab.text(".alerts li") if "errors" in text and "elm" in text)
    assert "above 0.1" in alerts and "cleared after" in alerts
    before = len(tab.text(".alerts li"))
    yard.alerts.add([alert("by hand", "fired", 70)])
    until(lambda: len(tab.text(".alerts li")) == before + 1)
    assert any("it fired" in text and "active" in text for text in tab.text(".alerts li.active"))
    yard.alerts.add([alert("by hand", "cleared", 74)])
    until(
        lambda: any("it fired" in text and "cleared after 4 min" in text for text in tab.text(".alerts li"))
    )


def test_a_limit_is_drawn_and_a_silence_is_a_gap(tab: Tab, site: str) -> None:
    tab.open("/app/iot")
    (panel,) = [
        p for p in httpx.get(f"{site}/apps/iot", timeout=120).json()["panels"] if p["title"] == "Readings"
    ]
    assert panel["limits"] == [{"rule": "limit", "at": 30.0, "clear": 28.0, "where": {}}]
    assert "boiler" in tab.panel("Readings") and "dead" in tab.panel("What fired")
    assert "415 = 415 counted" in tab.text(".status")[0].replace("\n", " ")
    # The picture itself: red where the limit is, and no orange between the cellar's readings.
    count = (
        "const [name, left, right] = arguments, c = document.querySelector('.lines-panel canvas');"
        "const probe = document.body.appendChild(document.createElement('i'));"
        "probe.style.color = `var(${name})`;"
        "const want = getComputedStyle(probe).color.match(/\\d+/g).map(Number); probe.remove();"
        "const all = [c.width * left, 0, c.width * (right - left), c.height];"
        "const {data} = c.getContext('2d').getImageData(...all);"
        "let n = 0; for (let i = 0; i < data.length; i += 4)"
        " if (want.every((v, k) => Math.abs(data[i + k] - v) < 8)) n++; return n"
    )
    assert tab.run(count, "--alarm", 0.1, 1.0) > 100
    assert tab.run(count, "--series-1", 0.1, 0.6) > 100
    assert tab.run(count, "--series-1", 0.7, 0.85) == 0


def test_it_is_used_by_keyboard_alone(tab: Tab) -> None:
    tab.open("/app/yard")
    tab.press("Tab")
    assert tab.run("return document.activeElement.className") == "skip"
    tab.run("document.querySelector('.lines-panel .chart').focus()")
    tab.press("ArrowLeft")
    said = tab.run("return document.querySelector('.lines-panel .legend .when').innerText")
    assert said.startswith("2026-01-01 01:1")
    names = tab.run(
        "return [...document.querySelectorAll('button, a, [tabindex=\"0\"]')]"
        ".filter(e => !(e.innerText || e.getAttribute('aria-label') || e.querySelector?.('title')))"
        ".map(e => e.outerHTML)"
    )
    assert names == []
    tab.run("document.querySelector('.spans button').focus()")
    tab.press("Enter")
    until(lambda: tab.run("return location.search") == "?span=15m")


@pytest.mark.parametrize("app", ["yard", "iot"])
def test_a_phone_has_no_horizontal_scroll(tab: Tab, app: str) -> None:
    tab.open(f"/app/{app}", PHONE)
    assert tab.run("return document.documentElement.scrollWidth") == 375
    wide = (
        "return [...document.querySelectorAll('.panel')]"
        ".filter(e => e.getBoundingClientRect().right > 375).length"
    )
    assert tab.run(wide) == 0


def test_it_is_light_or_dark_as_the_system_is_or_as_was_chosen(tab: Tab) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    light, dark = (tab.open("/app/iot", scheme=scheme).run(paper) for scheme in ("light", "dark"))
    assert light != dark
    tab.click(".theme")
    assert tab.run(paper) == light


def test_an_empty_page_says_what_to_do(tab: Tab) -> None:
    tab.open("/app/yard?key.host=nobody")
    assert "No rows in this span" in tab.panel("Users") and "longer span" in tab.panel("Users")
    tab.browser.get(f"{tab.run('return location.origin')}/app/nope")
    until(lambda: "There is no app nope here" in tab.text("main")[0])


def test_a_token_is_asked_for_once(browser: Any, shown: Any) -> None:
    service, apps = shown
    own = Service(service.tables)
    with serving(own, routes=page_routes(own, apps), open_to_all=OPEN_TO_ALL, token=TOKEN) as server:
        tab = Tab(browser, server.url)
        browser.get(f"{server.url}/app/iot")
        until(lambda: tab.text("form.token h1") == ["This server requires a token"])
        give = (
            "const field = document.getElementById('token'); field.value = arguments[0];"
            "field.form.requestSubmit()"
        )
        tab.run(give, "wrong")
        until(lambda: tab.run("return document.getElementById('token')?.value === ''"))
        tab.run(give, TOKEN)
        tab.drawn()
        browser.get(f"{server.url}/app/yard")
        tab.drawn()
        assert "Requests" in tab.panel("Requests") and TOKEN not in tab.run("return location.href")
        tab.complaints()  # of the answers that asked for the token


@pytest.mark.parametrize(
    ("name", "path", "size", "scheme", "height"),
    [
        ("page-dark", "/app/yard?span=", (800, 900), "dark", 420),
        ("page-phone", "/app/iot", PHONE, "light", 760),
    ],
)
def test_pictures_are_small(
    tab: Tab, tmp_path: Path, name: str, path: str, size: tuple[int, int], scheme: str, height: int
) -> None:
    """They are those in docs/pictures, which `STREAMGAUGE_PICTURES=1` draws again."""
    assert 5_000 < tab.open(path, size, scheme).picture(pictures(tmp_path) / f"{name}.webp", height) < 50_000
    assert (PICTURES / f"{name}.webp").is_file()

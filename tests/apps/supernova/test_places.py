"""Places from files, and cones around them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streamgauge.apps.supernova.places import Places
from streamgauge.apps.supernova.sky import degrees_apart


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "places.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_has_names_positions_and_radii(tmp_path: Path) -> None:
    text = (
        "# seen by us\nRA, Dec ,NAME,radius\n12:22:54.9,+15:49:25,M 100,30\n10.5,-0.25,b,\n,,ZTF20aajcdad,\n"
    )
    result = Places(written(tmp_path, text), 2).all
    assert [place.name for place in result] == ["M 100", "b", "ZTF20aajcdad"]
    assert (round(result[0].ra or 0, 5), round(result[0].dec or 0, 5), result[0].radius) == (
        185.72875,
        15.82361,
        30,
    )
    assert result[1][1:] == (10.5, -0.25, 2) and result[2][1:] == (None, None, 2)


def test_cones_hold_what_lies_within_them_and_nothing_else(tmp_path: Path) -> None:
    dice = random.Random(2)
    lines = [
        f"p{n},{dice.uniform(0, 360)},{dice.uniform(-90, 90)},{dice.uniform(1, 3600)}" for n in range(400)
    ]
    lines += ["pole,3,89.9999,3600", "seam,359.99999,0,60", "south,200,-90,3600"]
    places = Places(written(tmp_path, "name,ra,dec,radius\n" + "\n".join(lines)), 2)
    met = 0
    requested = [(dice.uniform(0, 360), dice.uniform(-90, 90)) for _ in range(2000)]
    requested += [(dice.uniform(0, 360), 89.99), (0.00001, 0.0), (20.0, -89.5), (180.0, 90.0)]
    for ra, dec in requested:
        wanted = {
            place.name
            for place in places.all
            if degrees_apart(ra, dec, place.ra or 0, place.dec or 0) * 3600 <= place.radius
        }
        assert {place.name for place, _ in places.within(ra, dec)} == wanted
        met += len(wanted)
    assert met > 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its columns are none"),
        ("ra,dec\n1,2\n", "its columns are ra, dec; name them name, ra and dec"),
        ("name,ra\na,1\n", "its columns are name, ra"),
        ("name,ra,dec\na,1,2\nb,x,2\n", "line 2 after the header, 'b': could not convert"),
        ("name,ra,dec\na,1,\n", "it has one of ra and dec"),
        ("name,ra,dec\na,400,2\n", "400 2 is not a position"),
        ("name,ra,dec\na,1:2:3:4,2\n", "is not an angle"),
        ("name,ra,dec,radius\na,1,2,0\n", "the radius must be above 0 and at most 3600 arcseconds, got 0"),
        ("name,ra,dec,radius\na,1,2,nan\n", "got nan"),
    ],
)
def test_wrong_files_are_refused_with_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        _ = Places(written(tmp_path, text), 2).all
    assert said in str(refused.value)

"""Exports of the catalogues that people have, their own tables, and files that are neither."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from streamgauge.apps.supernova.catalogs.extract import Extract, check_extract, extract

PLACE = (185.72875, 15.82361)
SEXAGESIMAL = "12:22:54.9", "+15:49:25"


def read(path: Path) -> Extract:
    check_extract(str(path))
    return extract(str(path))


def written(tmp_path: Path, text: str, name: str = "mine.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


EXPORTS = {
    "yours": (
        "ra,dec,name,type,z\n185.72875,15.82361,SN 2020oi,SN Ic,0.0052\n",
        ("SN 2020oi", "SN Ic", 0.0052),
    ),
    "without a type": ("Name,RA,Dec\nSN 2020oi,185.72875,15.82361\n", ("SN 2020oi", None, None)),
    "TNS, all objects": (
        '"2026-11-24 00:00:00 - 23:59:59"\n'
        '"objid","name_prefix","name","ra","declination","redshift","typeid","type","reporters"\n'
        '"1","SN","2020oi","185.72875","15.82361","0.0052","9","SN Ic","A, B"\n',
        ("SN 2020oi", "SN Ic", 0.0052),
    ),
    "TNS, a search": (
        "ID,Name,RA,DEC,Obj. Type,Redshift,Host Name\n1,SN 2020oi,12:22:54.900,+15:49:25.00,SN Ic,,M 100\n",
        ("SN 2020oi", "SN Ic", None),
    ),
    "SIMBAD": (
        'main_id,ra,dec,otype,rvz_redshift\n"SN 2020oi",185.72875,15.82361,SN*,0.0052\n',
        ("SN 2020oi", "SN*", 0.0052),
    ),
    "SIMBAD, sexagesimal": (
        "MAIN_ID\tRA\tDEC\tOTYPE\nSN 2020oi\t12 22 54.9\t+15 49 25\tSN*\n",
        ("SN 2020oi", "SN*", None),
    ),
    "Gaia": (
        "# comment\n#more\nsource_id,ra,dec,phot_variable_flag,in_qso_candidates,parallax_over_error\n"
        "3928281929939136768,185.72875,15.82361,VARIABLE,False,\n",
        ("Gaia 3928281929939136768", "variable", None),
    ),
    "VizieR": (
        "RAJ2000;DEJ2000;Name;Type\n185.72875;15.82361;RR Lyr;RRAB\n",
        ("RR Lyr", "RRAB", None),
    ),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_are_recognised_by_their_columns(export: str, tmp_path: Path) -> None:
    text, (name, kind, z) = EXPORTS[export]
    result = read(written(tmp_path, text))
    assert len(result) == 1 and result.label == "mine"
    entry = result.entry(0)
    assert entry[:2] == (name, kind) and entry.z == (z if z is None else pytest.approx(z, rel=1e-6))
    cones, _, apart = result.zones.within(np.array([PLACE[0]]), np.array([PLACE[1]]), 0.1)
    assert cones.tolist() == [0] and apart[0] < 0.03


def test_packed_text_and_parquet_are_read_alike(tmp_path: Path) -> None:
    text = EXPORTS["TNS, all objects"][0]
    packed, table = tmp_path / "tns.csv.gz", tmp_path / "gaia.parquet"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read(packed).entry(0).name == "SN 2020oi" and read(packed).label == "tns"
    frame = {
        "SOURCE_ID": [1 << 61, 7],
        "ra": [10.0, None],
        "dec": [-20.0, None],
        "in_qso_candidates": [True, None],
    }
    pl.DataFrame(frame).write_parquet(table)
    result = read(table)
    # A row without a position is left out, and counted.
    assert (len(result), result.unplaced) == (1, 1)
    assert result.entry(0) == (f"Gaia {1 << 61}", "QSO candidate", None)


def test_names_are_those_of_their_rows_in_any_order(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    count = 500_000
    ra, dec = dice.uniform(0, 360, count), dice.uniform(-90, 90, count)
    frame = pl.DataFrame({"name": [f"n{at}" for at in range(count)], "ra": ra, "dec": dec})
    frame.write_parquet(tmp_path / "many.parquet")
    result = read(tmp_path / "many.parquet")
    chosen = dice.integers(0, count, 500)
    cones, rows, _ = result.zones.within(ra[chosen], dec[chosen], 0.001)
    nearest = dict(zip(cones[::-1].tolist(), rows[::-1].tolist(), strict=True))
    assert [result.entry(nearest[at]).name for at in range(500)] == [f"n{at}" for at in chosen]
    assert len(result.names) > 1


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = written(tmp_path, "ra,dec,name\n1,2,a\n")
    first = read(path)
    assert extract(str(path)) is first
    path.write_text("ra,dec,name\n1,2,another\n")
    assert extract(str(path)).entry(0).name == "another"


def test_a_name_is_one_line_and_not_too_long(tmp_path: Path) -> None:
    result = read(written(tmp_path, f'ra,dec,name,type\n1,2,"a\x1b[31m\u202eb",x\x07\n1,2,{"n" * 500},\n'))
    assert result.entry(0) == ("a [31m b", "x ", None)
    assert result.entry(1).name == "n" * 100 + "…"


def test_an_extract_may_be_empty(tmp_path: Path) -> None:
    result = read(written(tmp_path, "ra,dec,name\n"))
    assert len(result) == 0 and result.classes(np.array([], np.int64)).size == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its columns are none; it needs ra, dec and name"),
        ("a,b\n1,2\n", "its columns are a, b; it needs ra, dec and name"),
        ("ra,dec,name\n1,2,a\n1,91,b\n", "row 2: ra and dec must be degrees"),
        ("ra,dec,name\n1,,a\n", "row 1: ra and dec must be degrees"),
        ("ra,dec,name\n12:61:00,1,a\n", "row 1: ra and dec must be degrees"),
        ("ra,dec,name\nhere,there,a\n", "row 1: ra and dec must be degrees"),
        ("ra,dec,name\n1,2,a\n1,2\n", "can't be read: CSV parse error"),
    ],
)
def test_what_is_not_an_extract_is_named(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=r"mine\.csv") as refused:
        check_extract(str(path))
        extract(str(path))
    assert said in str(refused.value)


def test_a_wrong_row_is_named_by_its_number_in_a_large_file(tmp_path: Path) -> None:
    lines = [f"{at % 360},{at % 90},n{at}" for at in range(600_000)]
    lines[555_554] = "1,2x,bad"
    path = written(tmp_path, "ra,dec,name\n" + "\n".join(lines) + "\n")
    check_extract(str(path))
    with pytest.raises(ValueError, match="row 555555: ra and dec"):
        extract(str(path))


def test_files_that_are_not_there_or_broken_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        check_extract(str(tmp_path / "nothing.csv"))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"broken\.parquet can't be read"):
        check_extract(str(broken))
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"ra,dec,name\n" + b"1,2,a\n" * 100_000)[:100])
    with pytest.raises(ValueError, match=r"cut\.csv\.gz can't be read"):
        check_extract(str(cut))

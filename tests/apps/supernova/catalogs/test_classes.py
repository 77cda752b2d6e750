"""Types of the catalogues that people use, and their classes."""

from __future__ import annotations

import pytest

from streamgauge.apps.supernova.catalogs.classes import CLASSES, classes_of

STAR, VARIABLE, AGN, GALAXY, SUPERNOVA = CLASSES.values()
TYPES = {
    STAR | VARIABLE: "V* RR* Ce? EB* CV* Mi* LP? RRAB EW SR M DSCT|GDOR|SXPHE ECL Varstar Nova UGSU EA/RS",
    STAR: "* ** HB* WD* RG* PM* star",
    AGN: "AGN QSO QSO? SyG Sy1 Sy2 BLL Bla Blazar Quasar",
    GALAXY: "G GiG GiC BiC Galaxy galaxy EmG",
    SUPERNOVA: "SN* SN? SN SLSN-I Supernova",
    0: "Radio X IR Other TDE Kilonova AT gamma",
}


@pytest.mark.parametrize("classes", TYPES)
def test_types_have_their_class(classes: int) -> None:
    types = TYPES[classes].split()
    assert {kind: classes_of(kind) for kind in types} == dict.fromkeys(types, classes)


@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        ("SN Ia-91T-like", SUPERNOVA),
        ("Seyfert 1 Galaxy", AGN),
        ("Active Galaxy Nucleus", AGN),
        ("Galaxy in Group of Galaxies", GALAXY),
        ("QSO candidate", AGN),
        ("Variable Star of RR Lyr type", STAR | VARIABLE),
        ("White Dwarf", STAR),
        (" ", 0),
    ],
)
def test_types_in_words_have_their_class(kind: str, classes: int) -> None:
    assert classes_of(kind) == classes

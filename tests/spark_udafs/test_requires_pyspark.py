"""What PySpark must be there: each version that works is imported, older ones are refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.spark_udafs import requires_pyspark
from streamgauge.spark_udafs.requires_pyspark import SparkTooOldError, need_pyspark


@pytest.mark.parametrize("installed", ["3.5.9", "4.0.5"])
def test_versions_that_are_too_old_are_refused_by_name(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requires_pyspark, "version", lambda name: installed)
    with pytest.raises(SparkTooOldError, match=f"PySpark 4.1 .*, 4.2 and 4.3; {installed} is"):
        need_pyspark()


@pytest.mark.parametrize("installed", ["4.1.4", "4.2.0.dev1", "4.3.0", "10.0.0"])
def test_other_versions_are_let_in(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requires_pyspark, "version", lambda name: installed)
    need_pyspark()


def test_what_pyspark_4_1_lacks_is_imported_in_one_place_alone() -> None:
    floor = Path(requires_pyspark.__file__).parent
    importing = [p.name for p in floor.rglob("*.py") if "pyspark.sql.streaming.datasource" in p.read_text()]
    assert importing == ["read_limits.py"]

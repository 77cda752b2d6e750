"""The page on DataFrames: its code runs, and gives what a table of sketches should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "spark.md").read_text()


@pytest.mark.slow
@pytest.mark.spark
def test_the_code_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge import query
    from streamgauge.spark import as_table

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    names: dict[str, Any] = {}
    for text in blocks:
        # Spark's working directory is where it was started.
        text = re.sub(r'"(visits(-by-hour)?)"(?=\)|$)', rf'"{tmp_path}/\1"', text, flags=re.M)
        exec(text.replace("spark = sg.spark.session()", ""), {**names, "spark": spark}, names)
    hours = query(as_table(spark.read.parquet(f"{tmp_path}/visits-by-hour")))
    assert hours["visits"].sum() == 10_000
    assert hours["paid"].sum() == pytest.approx(sum(number % 90 for number in range(10_000)))
    # Each user comes again after 700 s; the watermark lies ten minutes before the last row.
    ended = [row["visits"] for row in spark.table("sessions").collect()]
    assert ended == [1] * (9_999 - 600 - 300 + 1)
    counts = {row["site"]: row["visits"] for row in spark.table("counts").collect()}
    assert counts == {0: 3_334, 1: 3_333, 2: 3_333}

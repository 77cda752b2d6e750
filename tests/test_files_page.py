"""The page about files and frames, and the README's first blocks: their code prints what they show."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "files.md").read_text()
README = (ROOT / "README.md").read_text()
FIRST = README[README.index("## Files and frames") : README.index("## Straight off Kafka")]
PROGRAM = Path(sys.executable).with_name("streamgauge")
SHOWN = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", [PAGE, FIRST], ids=["files", "readme"])
def test_the_code_prints_what_is_shown(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = SHOWN.findall(page)
    assert blocks
    for code, shown in blocks:
        exec(code, names)
        assert capsys.readouterr().out == shown


def test_the_commands_run(tmp_path: Path) -> None:
    trades = pl.DataFrame({"at": ["2026-06-01T12:00:10"], "symbol": ["ACME"], "user": [1], "price": [9.5]})
    trades.write_parquet(tmp_path / "trades.parquet")
    (tmp_path / "trades").mkdir()
    trades.write_parquet(tmp_path / "trades" / "june.parquet")
    lines = [line for line in PAGE.splitlines() if line.startswith("streamgauge ")]
    assert len(lines) == 3
    for line in lines:
        command = [str(PROGRAM), *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "1" in done.stdout, done.stderr

"""The page about files and frames: its code prints what it shows, and its commands run."""

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
PROGRAM = Path(sys.executable).with_name("streamgauge")
SHOWN = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", re.M | re.S)


def test_the_code_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = SHOWN.findall(PAGE)
    assert blocks
    for code, shown in blocks:
        exec(code, names)
        printed = capsys.readouterr().out
        assert re.fullmatch(re.escape(shown).replace("…", ".*"), printed), printed


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

"""`streamgauge pack`: what is refused before an archive is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("streamgauge")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["environment.zip"], "must end in .tar.gz or .tgz, got environment.zip"),
        (["environment.tar.gz", "--families", "nope"], "no aggregate is called 'nope'"),
        (["environment.tar.gz", "--with", "no-such-streams"], "no-such-streams, which the archive needs"),
    ],
)
def test_what_cannot_be_packed_leaves_nothing(tmp_path: Path, options: list[str], said: str) -> None:
    done = subprocess.run([PROGRAM, "pack", *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []

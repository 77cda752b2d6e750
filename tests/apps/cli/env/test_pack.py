"""`streamgauge env pack`: what is refused before an archive is made, and where that may lie."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from streamgauge.apps.cli.env.pack import pack
from streamgauge.apps.environment import packed_environment

PROGRAM = Path(sys.executable).with_name("streamgauge")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["environment.zip"], "must end in .tar.gz or .tgz, got environment.zip"),
        (["environment.tar.gz", "--families", "nope"], "no aggregate is called 'nope'"),
        (["environment.tar.gz", "--with", "no-such-streams"], "no-such-streams, which the archive needs"),
    ],
)
def test_what_cannot_be_packed_leaves_nothing(tmp_path: Path, options: list[str], said: str) -> None:
    done = subprocess.run([PROGRAM, "env", "pack", *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_archive_may_be_named_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(folder: Path, packages: list[str]) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").write_text("#!/bin/sh\ntouch warmed\n")
        (folder / "bin" / "python").chmod(0o755)

    monkeypatch.setattr(packed_environment, "stage_environment", stage)
    monkeypatch.chdir(tmp_path)
    for name in ("environment.tar.gz", "envs/environment.tgz"):
        pack(Path(name))
        with tarfile.open(name) as archive:
            assert sorted(archive.getnames()) == ["bin", "bin/python", "warmed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["environment.tar.gz", "envs"]

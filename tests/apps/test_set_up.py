"""The set-up of a new clone: what pip prints becomes one line, and all of it is shown if pip fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.apps import set_up

OUTPUT = """\
Obtaining file:///clone
  Preparing metadata (pyproject.toml): started
Collecting pyspark<4.4,>=4.3 (from streamgauge==0.1.0)
  Downloading pyspark-4.3.0.tar.gz (417.0 MB)
Progress 104250000 of 417000000
Progress 417000000 of 417000000
Collecting rich>=13.7
  Downloading rich-14.0.0-py3-none-any.whl.metadata (18 kB)
Installing collected packages: rich, pyspark
Successfully installed pyspark-4.3.0 rich-14.0.0
"""


def test_each_line_of_pip_says_how_far_it_is() -> None:
    assert list(set_up.progress(OUTPUT.splitlines())) == [
        "Preparing metadata (pyproject.toml): started",
        "finding out about pyspark",
        "fetching pyspark-4.3.0",
        "fetching pyspark-4.3.0 ######·················· 104.2 of 417.0 MB",
        "fetching pyspark-4.3.0 ######################## 417.0 of 417.0 MB",
        "finding out about rich",
        "fetching rich-14.0.0",
        "Installing collected packages: rich, pyspark",
    ]


def test_what_the_jars_need_is_among_the_requirements() -> None:
    first = set_up.first_requirements((set_up.ROOT / "pyproject.toml").read_text())
    assert {one.split(">")[0] for one in first} == {"pyspark", "rich", "filelock", "platformdirs"}


def test_it_stands_on_the_standard_library_alone() -> None:
    tree = ast.parse(Path(set_up.__file__).read_text())
    names = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("code", [0, 3])
def test_pips_own_output_is_shown_if_it_fails_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], code: int
) -> None:
    pip = tmp_path / "python"
    pip.write_text(f"#!/bin/sh\ncat <<'END'\n{OUTPUT}END\nexit {code}\n")
    pip.chmod(0o755)
    if code:
        with pytest.raises(SystemExit, match="3"):
            set_up.install(pip, "Spark", "pyspark")
    else:
        set_up.install(pip, "Spark", "pyspark")
    shown = capfd.readouterr().err
    assert ("Successfully installed" in shown) == bool(code)
    assert len(shown.splitlines()) <= (3 if not code else 20)


def test_what_fetches_the_jars_finds_the_package_before_it_is_installed(tmp_path: Path) -> None:
    code = "import streamgauge.operators.java as java; print(java.__file__)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=set_up.importable(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(ran.stdout.strip()).is_relative_to(tmp_path)


def test_modules_are_compiled_where_processes_do_not_keep_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    for name in ("room/deep", ".venv"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one.py").write_text("x = 1")
    (tmp_path / "room" / "broken.py").write_text("x =")
    compiling = set_up.compiling(Path(sys.executable), {"PYTHONDONTWRITEBYTECODE": "1"})
    assert compiling.wait() == 0
    assert [path.parent.parent for path in tmp_path.rglob("one.*.pyc")] == [tmp_path / "room" / "deep"]

"""What is in the archive that `streamgauge env pack` makes.

That workers run with nothing but an archive, `tests/spark_udafs/cluster/test_environments.py` shows.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from streamgauge.apps.environment.packed_environment import (
    HOME,
    PackError,
    _package_files,
    required,
    write_archive,
)


def test_all_that_the_package_needs_comes_along_but_not_spark() -> None:
    names = {one.name.lower() for one in required("streamgauge[spark]", "fastavro")}
    assert {"streamgauge", "numba", "llvmlite", "pandas", "polars", "pyarrow", "fastavro"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "mypy"}


def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(PackError, match="no-such-streams, which the archive needs, is not installed here"):
        list(required("streamgauge[spark]", "no-such-streams"))


def test_of_a_checkout_only_the_package_comes_along() -> None:
    files = {str(path.relative_to(HOME)) for path in _package_files(HOME)}
    assert {"__init__.py", "py.typed", "spark_udafs/log4j2.properties", "apps/page/files/uplot"} & files
    assert "sketches/hll/sketch.py" in files and any(file.endswith(".csv") for file in files)
    assert not [
        file for file in files if file.startswith(("tests/", ".venv/", "docs/")) or "__pycache__" in file
    ]


def test_nobody_but_root_may_write_what_is_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("#!/bin/sh\n")
    (folder / "bin" / "python").chmod(0o777)
    write_archive(folder, tmp_path / "environment.tar.gz")
    with tarfile.open(tmp_path / "environment.tar.gz") as archive:
        entries = {entry.name: entry for entry in archive.getmembers()}
    assert set(entries) == {"bin", "bin/python"}
    assert entries["bin/python"].mode == 0o755 and entries["bin/python"].uid == 0

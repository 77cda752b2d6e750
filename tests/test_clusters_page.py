"""The pages on clusters and on platforms name settings that Spark has, also those of YARN and Kubernetes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = "".join((DOCS / f"{name}.md").read_text() for name in ("clusters", "platforms"))
PREFIXES = (
    "spark.executorEnv.",
    "spark.yarn.appMasterEnv.",
    "spark.kubernetes.driverEnv.",
    "spark.kubernetes.driver.volumes.",
)
"""What settings begin with whose names end in those of variables, or of volumes."""
ENTRIES = ("org.apache.spark.deploy.yarn.config.package$", "org.apache.spark.deploy.k8s.Config$")
"""Where Spark declares settings that aren't its core's."""


@pytest.mark.spark
def test_spark_knows_every_setting(spark: Any) -> None:
    names = set(re.findall(r"(?<![.\w])spark\.[a-z]\w*(?:\.\w+)+", re.sub(r"sg\.spark\.\w+", "", PAGES)))
    jvm = spark.sparkContext._jvm
    for entries in ENTRIES:
        jvm.java.lang.Class.forName(entries)
    known = jvm.org.apache.spark.internal.config.ConfigEntry
    unknown = [name for name in sorted(names) if not name.startswith(PREFIXES) and not known.findEntry(name)]
    assert len(names) > 12
    assert unknown == []

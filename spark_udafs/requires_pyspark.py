"""Spark is an optional extra: without it, importing this package reports what to install."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from ..sketches.core.errors import StreamgaugeError


class SparkMissingError(StreamgaugeError, ModuleNotFoundError):
    """PySpark isn't installed; the message says what installs it."""


class SparkTooOldError(StreamgaugeError, RuntimeError):
    """This version of Spark can't do it; the message says which one can."""


def need_pyspark() -> None:
    """Raise `SparkMissingError` if PySpark isn't installed, and `SparkTooOldError` before 4.1."""
    if find_spec("pyspark") is None:
        raise SparkMissingError(
            "PySpark is not installed, and everything of streamgauge that runs on Spark needs it; "
            "install streamgauge with its extra 'spark'",
            name="pyspark",
        )
    with suppress(PackageNotFoundError):  # a cluster's own copy may lack its metadata
        installed = version("pyspark")
        if (release := re.match(r"(\d+)\.(\d+)", installed)) and tuple(map(int, release.groups())) < (4, 1):
            raise SparkTooOldError(
                "streamgauge runs on PySpark 4.1 (without streams from its own sources), 4.2 and 4.3; "
                f"{installed} is installed. Install streamgauge with its extra 'spark'"
            )

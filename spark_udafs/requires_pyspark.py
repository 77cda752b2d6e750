"""Spark is an extra of the package: importing this floor without it says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from ..sketches.core.errors import StreamgaugeError


class SparkMissingError(StreamgaugeError, ModuleNotFoundError):
    """PySpark isn't installed; the message says what installs it."""


def need_pyspark() -> None:
    """Raise `SparkMissingError` if PySpark isn't installed."""
    if find_spec("pyspark") is None:
        raise SparkMissingError(
            "PySpark is not installed, and everything of streamgauge that runs on Spark needs it: "
            "pip install 'streamgauge[spark]'",
            name="pyspark",
        )

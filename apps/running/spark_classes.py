"""Where the classes are recorded that Spark loads: its sessions start in two thirds of the time with them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..environment.cache import CacheError
from ..environment.class_archive import ClassArchive
from ..environment.java import Java


def recorded(java: Java) -> list[str]:
    """The options by which this Java finds what was recorded; nothing while that is nothing."""
    with suppress(CacheError):
        return spark_archive(java).options()
    return []


def spark_archive(java: Java) -> ClassArchive:
    """That of Spark's jars, as this environment has them. Raises `CacheError` if there is no place for it."""
    import pyspark

    return ClassArchive.of("spark", java, (Path(pyspark.__file__).parent / "jars").glob("*.jar"))

"""Packages of extras: if one is missing, the error names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from .errors import StreamgaugeError

EXTRAS = {
    "apprise": "notify",
    "attrs": "registry",
    "authlib": "registry",
    "cachetools": "registry",
    "datasketches": "stored",
    "deltalake": "delta",
    "httpx2": "registry",
    "icu4py": "languages",
    "jinja2": "notify",
    "paho": "agents",
    "prompt_toolkit": "sql",
    "psycopg": "postgres",
    "py3langid": "languages",
    "pyiceberg": "iceberg",
    "swagger_ui_bundle": "serve",
    "websockets": "agents",
}
"""The extra that installs a package, by the package's import name."""


class MissingExtraError(StreamgaugeError, ModuleNotFoundError):
    """A package of an extra isn't installed; the message names the extra."""


@contextmanager
def naming_extras() -> Iterator[None]:
    """Import modules that may need an extra's packages. Raises `MissingExtraError` if one isn't installed.

    >>> with naming_extras():
    ...     raise ModuleNotFoundError(name="paho.mqtt")
    Traceback (most recent call last):
    streamgauge.sketches.core.extras.MissingExtraError: paho is not installed; install streamgauge \
with its extra 'agents'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise _missing(package) from None


def check_extra(package: str) -> None:
    """Raise `MissingExtraError` if a package of an extra isn't installed."""
    if find_spec(package) is None:
        raise _missing(package)


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"{package} is not installed; install streamgauge with its extra {EXTRAS[package]!r}", name=package
    )

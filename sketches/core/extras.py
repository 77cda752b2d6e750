"""Packages of extras: where one is missing, the message names the extra that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from .errors import StreamgaugeError

EXTRAS = {
    "apprise": "notify",
    "datasketches": "stored",
    "icu4py": "apps",
    "jinja2": "notify",
    "paho": "agents",
    "prompt_toolkit": "sql",
    "py3langid": "apps",
    "swagger_ui_bundle": "serve",
    "websockets": "agents",
}
"""The extra that brings a package, by the name under which it is imported."""


class MissingExtraError(StreamgaugeError, ModuleNotFoundError):
    """A package of an extra isn't installed; the message says which extra brings it."""


@contextmanager
def naming_extras() -> Iterator[None]:
    """Import what may need packages of extras. Raises `MissingExtraError` where one isn't installed.

    >>> with naming_extras():
    ...     raise ModuleNotFoundError(name="paho.mqtt")
    Traceback (most recent call last):
    streamgauge.sketches.core.extras.MissingExtraError: paho is not installed: pip install \
'streamgauge[agents]'
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
        f"{package} is not installed: pip install 'streamgauge[{EXTRAS[package]}]'", name=package
    )

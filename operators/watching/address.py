"""The address of metrics."""

from __future__ import annotations

_LOOPBACK = "127.0.0.1"


def address_of(given: str | int) -> tuple[str, int]:
    """Host and port of ``9400`` or ``"0.0.0.0:9400"``; by default on this machine only.

    Raises `ValueError` for anything else.

    >>> address_of(9400), address_of("0.0.0.0:9400"), address_of("[::1]:9400")
    (('127.0.0.1', 9400), ('0.0.0.0', 9400), ('::1', 9400))
    >>> address_of("box:http")
    Traceback (most recent call last):
    ValueError: metrics must be a port, such as 9400, or "host:port", got 'box:http'
    """
    host, _, port = str(given).rpartition(":")
    if isinstance(given, bool) or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError(f'metrics must be a port, such as 9400, or "host:port", got {given!r}')
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(port)

"""Bytes as short text, to be stored in JSON."""

from __future__ import annotations

import base64
import zlib


def packed(raw: bytes) -> str:
    """The bytes, compressed by zlib, in Base64.

    >>> unpacked(packed(b"abc"))
    b'abc'
    """
    return base64.b64encode(zlib.compress(raw, 1)).decode()


def unpacked(text: str) -> bytes:
    """The bytes of a text from `packed`. Raises `ValueError` for damaged text."""
    try:
        return zlib.decompress(base64.b64decode(text))
    except zlib.error as error:
        raise ValueError(f"a column can't be unpacked: {error}") from None

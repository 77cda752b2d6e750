"""Cutouts as pictures: FITS images in, PNG out, brighter where there is more light.

A reader for what alert packets hold: images of two axes in the primary part of a FITS file, by gzip or plain.
Source: the FITS Standard 4.0 (sections 3 and 4), the PNG Specification (third edition).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import polars as pl

from ...sketches.core.errors import StreamgaugeError

_BLOCK, _CARD = 2880, 80
_LARGEST = 4 << 20
"""The bytes that a cutout may have unpacked, and the pixels of a picture: those of packets have 63 × 63."""
_TYPES = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
_KINDS = ("science", "template", "difference")
_DARK, _LIGHT = 1.0, 99.5
"""The percentiles of the pixels that are black and white."""


class NoImage(StreamgaugeError, ValueError):
    """Bytes that hold no image, with the reason."""


def image(data: bytes) -> np.ndarray:
    """The pixels of a FITS file's primary image, as doubles: rows from the lowest one up.

    Raises `NoImage` for anything else.
    """
    if data[:2] == b"\x1f\x8b":
        data = _unpacked(data)
    cards, begin = _header(data)
    sizes = [int(cards.get(f"NAXIS{axis}", "0")) for axis in (1, 2)]
    kind = _TYPES.get(int(cards.get("BITPIX", "0")))
    if cards.get("NAXIS") != "2" or kind is None or min(sizes) < 1 or sizes[0] * sizes[1] > _LARGEST:
        raise NoImage(f"not an image of two axes: NAXIS is {cards.get('NAXIS')}, its sizes {sizes}")
    count, width = sizes[0] * sizes[1], np.dtype(kind).itemsize
    if len(data) < begin + count * width:
        raise NoImage(f"it ends before the last of its {count} pixels")
    pixels = np.frombuffer(data, kind, count, begin).reshape(sizes[1], sizes[0]).astype(np.float64)
    return pixels * float(cards.get("BSCALE", "1")) + float(cards.get("BZERO", "0"))


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(data, _LARGEST)
    except zlib.error as error:
        raise NoImage(f"not gzip: {error}") from None


def _header(data: bytes) -> tuple[dict[str, str], int]:
    """The cards of the first header by their names, and where the pixels begin."""
    cards: dict[str, str] = {}
    for at in range(0, len(data) - _CARD + 1, _CARD):
        card = data[at : at + _CARD].decode("ascii", "replace")
        name = card[:8].rstrip()
        if at == 0 and name != "SIMPLE":
            break
        if name == "END":
            return cards, (at // _BLOCK + 1) * _BLOCK
        if card[8:10] == "= ":
            cards.setdefault(name, card[10:].partition("/")[0].strip())
    raise NoImage("not FITS: it has no header")


def png(pixels: np.ndarray) -> bytes:
    """A picture in greys, north as the file has it, without light where a pixel isn't known.

    >>> png(np.array([[0.0, 1.0], [np.nan, 2.0]]))[1:4]
    b'PNG'
    """
    known = pixels[np.isfinite(pixels)]
    low, high = np.percentile(known, [_DARK, _LIGHT]) if len(known) else (0.0, 1.0)
    span = high - low if high > low else 1.0
    grey = np.nan_to_num(np.clip((pixels - low) / span, 0, 1), nan=0.0)
    # Faint light shows beside a bright core.
    grey = np.arcsinh(10 * grey) / np.arcsinh(10)
    rows = np.flipud((grey * 255).round().astype(np.uint8))
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    height, width = rows.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture(data: bytes | None) -> bytes | None:
    """A cutout as PNG; None for one that is missing or holds no image."""
    if not data:
        return None
    try:
        return png(image(data))
    except (NoImage, ValueError, OverflowError):
        return None


def with_pictures(rows: pl.DataFrame) -> pl.DataFrame:
    """The cutouts of alerts that passed as PNG, and no others: for `map_batches`."""
    wanted = rows["passing"].to_list()
    return rows.with_columns(
        pl.Series(
            kind,
            [picture(data) if take else None for take, data in zip(wanted, rows[kind].to_list())],
            pl.Binary,
        )
        for kind in _KINDS
    )

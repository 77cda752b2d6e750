"""Cutouts as pictures: FITS images in, PNG out, brighter where there is more light.

It reads what alert packets hold: images with two axes in the primary HDU of a FITS file, plain or gzip.
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
"""The maximum of a cutout's decompressed bytes and of a picture's pixels; packets have 63 × 63 pixels."""
_TYPES = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
_KINDS = ("science", "template", "difference")
_DARK, _LIGHT = 1.0, 99.5
"""The percentiles of pixels that become black and white."""


class NoImage(StreamgaugeError, ValueError):
    """Bytes are not an image; the message is the reason."""


def image(data: bytes) -> np.ndarray:
    """Return the pixels of a FITS file's primary image, as doubles: rows from the bottom up.

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
    """Return the first header's cards by name, and the offset of the pixels."""
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
    """Encode a picture in shades of grey, in the file's orientation, black where a pixel is unknown.

    >>> png(np.array([[0.0, 1.0], [np.nan, 2.0]]))[1:4]
    b'PNG'
    """
    known = pixels[np.isfinite(pixels)]
    low, high = np.percentile(known, [_DARK, _LIGHT]) if len(known) else (0.0, 1.0)
    span = high - low if high > low else 1.0
    grey = np.nan_to_num(np.clip((pixels - low) / span, 0, 1), nan=0.0)
    # Makes faint light visible beside a bright core.
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
    """Convert a cutout to PNG; None if it is missing or not an image."""
    if not data:
        return None
    try:
        return png(image(data))
    except (NoImage, ValueError, OverflowError):
        return None


def with_pictures(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert the cutouts of alerts that passed to PNG and drop the others, for `map_batches`."""
    wanted = rows["passing"].to_list()
    return rows.with_columns(
        pl.Series(
            kind,
            [picture(data) if take else None for take, data in zip(wanted, rows[kind].to_list())],
            pl.Binary,
        )
        for kind in _KINDS
    )

"""Cutouts as pictures: FITS read, PNG written, and what is no image."""

from __future__ import annotations

import gzip
import struct
import zlib
from io import BytesIO
from pathlib import Path

import fastavro
import numpy as np
import polars as pl
import pytest

from streamgauge.apps.supernova.pictures import NoImage, image, picture, png, with_pictures

from ...cases import each


def fits(pixels: np.ndarray, kind: int = -32, **more: object) -> bytes:
    cards = {
        "SIMPLE": "T",
        "BITPIX": kind,
        "NAXIS": 2,
        "NAXIS1": pixels.shape[1],
        "NAXIS2": pixels.shape[0],
        **more,
    }
    text = "".join(f"{name:<8}= {value!s:>20} / a comment".ljust(80) for name, value in cards.items())
    head = (text + "END".ljust(80)).encode()
    types = {8: ">u1", 16: ">i2", 32: ">i4", -32: ">f4", -64: ">f8"}
    data = pixels.astype(types[kind]).tobytes()
    return head.ljust(-(-len(head) // 2880) * 2880) + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


def grey(data: bytes) -> np.ndarray:
    """The pixels of a PNG in greys, from the top."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 0) and list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


@each("kind", [8, 16, 32, -32, -64])
@each("packed", [False, True])
def test_images_of_every_type_are_read(kind: int, packed: bool) -> None:
    pixels = np.arange(35).reshape(5, 7)
    data = fits(pixels, kind, BSCALE=2, BZERO=-1)
    assert np.array_equal(image(gzip.compress(data) if packed else data), pixels * 2 - 1)


def test_pictures_have_light_where_the_image_has_and_its_lowest_row_at_the_bottom() -> None:
    pixels = np.random.default_rng(1).normal(0, 1, (63, 61))
    pixels[5, 40] = 1000
    pixels[20, 3] = np.nan
    shown = grey(png(pixels))
    assert shown.shape == (63, 61) and shown[62 - 5, 40] == 255 and shown[62 - 20, 3] == 0
    assert not grey(png(np.full((3, 3), np.nan))).any() and not grey(png(np.full((3, 3), 7.0))).any()


def test_the_recorded_cutouts_are_read_as_astropy_reads_them(recordings: Path) -> None:
    path = sorted((recordings / "astronomy" / "ztf").glob("*.avro"))[0]
    with path.open("rb") as file:
        packet = next(fastavro.reader(file))
    for name in ("cutoutScience", "cutoutTemplate", "cutoutDifference"):
        data = packet[name]["stampData"]
        pixels = image(data)
        assert pixels.shape == (63, 63) and np.isfinite(pixels).mean() > 0.9
        assert grey(picture(data)).shape == (63, 63)
        try:
            from astropy.io import fits as astropy_fits
        except ImportError:
            continue
        with astropy_fits.open(BytesIO(gzip.decompress(data)), ignore_missing_simple=True) as result:
            assert np.array_equal(result[0].data, pixels, equal_nan=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has no header"),
        (b"\x89PNG", "it has no header"),
        (b"\x1f\x8bnot gzip", "not gzip"),
        (fits(np.zeros((4, 4)))[:2890], "before the last of its 16 pixels"),
        (fits(np.zeros((4, 4)), NAXIS=0), "NAXIS is 0"),
        (fits(np.zeros((4, 4)), NAXIS1=1 << 30), "its sizes"),
        (fits(np.zeros((4, 4)), NAXIS1=-4), "its sizes"),
        (gzip.compress(b"SIMPLE  =" + b"\0" * (64 << 20)), "it has no header"),
    ],
)
def test_what_holds_no_image_is_no_picture(data: bytes, said: str) -> None:
    with pytest.raises(NoImage, match=said):
        image(data)
    assert picture(data) is None


def test_only_alerts_that_passed_have_pictures() -> None:
    data = fits(np.arange(16).reshape(4, 4))
    kinds = {"science": [data] * 3, "template": [None, b"x", data], "difference": [data] * 3}
    result = with_pictures(pl.DataFrame({"passing": [True, True, False], **kinds}))
    assert [cell is not None for cell in result["science"]] == [True, True, False]
    assert result["template"].null_count() == 3

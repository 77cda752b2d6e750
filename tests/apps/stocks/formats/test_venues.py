"""Each venue's sample becomes the trades that it says, and no other format takes it for its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.stocks.formats.venue import VenueFrames
from streamgauge.apps.stocks.formats.venues import VENUES
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.table.query import query

from ..tried import fed
from .venue_samples import AT_MS, FOREIGN, PACKED, SAMPLES, Sample

AT = datetime.fromtimestamp(AT_MS // 1000, UTC).replace(microsecond=123_000)
RATES = {"rates": "JPY=0.01,KRW=0.001"}


def recorded(tmp_path: Path, frames: list[Any]) -> Path:
    path = tmp_path / "capture.txt"
    path.write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    return path


def recognised(path: Path) -> list[str]:
    head = path.read_bytes()
    return [form.name for form in app_of("stocks").formats if form.recognises(path, head)]


def test_every_venue_has_a_sample() -> None:
    assert [sample.format for sample in SAMPLES] == [venue.name for venue in VENUES]


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.format for sample in SAMPLES])
def test_a_sample_becomes_its_trades(sample: Sample) -> None:
    job = Job.of(app_of("stocks"), sample.format, RATES)
    frames = [*sample.others, *sample.trades]
    result = fed(job, [Message(json.dumps(one).encode(), None, AT_MS) for one in frames], parts=["tape"])
    account = result.account
    assert (account.counted, account.filtered) == (len(sample.trades), len(sample.others)), result.refused
    rows = query(result.tables["tape"]).sort("symbol", "seq", "price")
    assert rows["at"].dt.truncate("1ms").unique().to_list() == [AT]
    unnumbered = {row[0] for row in sample.rows if row[4] is None}
    named = pl.when(pl.col("symbol").is_in(unnumbered)).then(None).when(pl.col("seq") < 0).then(-1)
    columns = ("symbol", "price", "size", "side", named.otherwise("seq").alias("seq"), "value")
    expected = [(*row[:5], None if row[5] is None else pytest.approx(row[5])) for row in sample.rows]
    assert sorted(rows.select(*columns).rows(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.format for sample in SAMPLES])
def test_only_its_own_format_recognises_a_sample(sample: Sample, tmp_path: Path) -> None:
    assert recognised(recorded(tmp_path, [*sample.others, *sample.trades])) == [sample.format]
    for frame in sample.trades:
        assert recognised(recorded(tmp_path, [frame])) == [sample.format], frame
    for frame in sample.others:
        assert recognised(recorded(tmp_path, [frame])) in ([sample.format], []), frame


@pytest.mark.parametrize("venue", FOREIGN)
def test_what_nothing_reads_is_refused(venue: str, tmp_path: Path) -> None:
    path = recorded(tmp_path, FOREIGN[venue])
    with pytest.raises(ValueError, match=r"capture\.txt matches no format of stocks; name one with --format"):
        Job.of(app_of("stocks"), recording=path)
    path.write_text(f"wss://ws.example.com/v1 <-> 1618677816.84\n{path.read_text()}")
    with pytest.raises(ValueError, match=r"capture\.txt, recorded from ws\.example\.com, matches no format"):
        Job.of(app_of("stocks"), recording=path)


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.format for sample in SAMPLES])
@pytest.mark.parametrize("damage", ["price", "size", "at"])
def test_a_damaged_trade_is_refused_with_its_field(sample: Sample, damage: str) -> None:
    venue = next(venue for venue in VENUES if venue.name == sample.format)
    frame = sample.trades[0]
    names = [path.removeprefix("^") for path in getattr(venue, damage).split("|")]

    def damaged(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: "much" if name in names else damaged(one) for name, one in value.items()}
        if isinstance(value, list) and value and not isinstance(value[0], dict | list):
            return ["much" if str(at) in names else one for at, one in enumerate(value)]
        return [damaged(one) for one in value] if isinstance(value, list) else value

    decoded = VenueFrames(venue).decode(Messages.of([json.dumps(damaged(frame)).encode(), b"pong", b"{}"]))
    assert decoded.frame.height == 1 and decoded.refused.tolist() == [0, 1]
    assert f"\"{getattr(venue, damage)}\" is 'much', not a " in decoded.reasons[0]
    assert decoded.reasons[1].startswith("not JSON")


def test_the_same_trade_twice_counts_once_if_it_is_named() -> None:
    sample = next(one for one in SAMPLES if one.format == "hyperliquid")
    job = Job.of(app_of("stocks"), sample.format)
    result = fed(job, [Message(json.dumps(sample.trades[0]).encode())] * 2, parts=["movers", "tape"])
    assert query(result.tables["movers"])["volume"].to_list() == [2.0, 2.0]
    # Its names don't rise, so that none is late.
    assert result.of("duplicate") and not result.of("out of order")


def test_frames_packed_or_as_python_writes_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "capture.txt"
    path.write_text(f"1618677817.06: {PACKED!r}\n1618677817.07: b'{{\"ping\":1}}'\nb'\\x1f\\x8bx'\n")
    job = Job.of(app_of("stocks"), recording=path)
    assert job.form.name == "htx"
    values = [message.value for message in job.form.messages(path, job.settings)]
    assert values[1] == b'{"ping":1}'
    htx = VenueFrames(next(venue for venue in VENUES if venue.name == "htx"))
    decoded = htx.decode(Messages.of([PACKED, PACKED[:-9], *values]))
    assert decoded.refused.tolist() == [1, 4] and "packed by gzip" in decoded.reasons[0]


def test_a_stream_s_definition_follows_the_specification() -> None:
    fingerprints = {
        Job.of(app_of("stocks"), venue.name).streams(Feed("t", "nowhere:1"))["tape"].fingerprint
        for venue in VENUES
    }
    assert len(fingerprints) == len(VENUES)

"""Files as strangers have them: packed, with a byte order mark, of Windows, broken, empty, of another app."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.operators.formats.messages import Messages

BOM = b"\xef\xbb\xbf"
READINGS = [b"timestamp,value", b"2026-01-01 00:00:00,5", b"broken", b"2026-01-01 00:05:00,7"]
JSON = [b'{"timestamp":"2026-01-01T00:00:00Z","value":5}', b"{broken"]
DAYS = [b"Date,Close", b"2026-01-02,5", b"rubbish"]
TRADES = [b'{"T":"t","S":"A","i":1,"x":"D","p":1.5,"s":3,"t":"2026-06-01T14:30:00Z"}', b"{broken"]
POSTS = [b'{"did":"did:plc:a","time_us":1767225600000000,"kind":"identity"}', b"{broken"]
LOG = [b'1.2.3.4 - - [17/May/2015:10:05:0%d +0000] "GET / HTTP/1.1" 200 5 "-" "-"' % n for n in range(3)]
ALERT = [b'{"objectId":"ZTF26a","candid":1,"candidate":{"jd":2461000.5}}', b"{broken"]

GIANT = 200_000 * b"x"
RECORDS = {
    "quoted ends of lines": [b'%s,5,"a\r\n\r\nb, \xe2\x80\xa8""c"""', b"%s,7,plain"],
    "a giant field": [b"%s,5," + GIANT, b'%s,7,"' + GIANT + b'"'],
    "a quote that is never closed": [b'%s,5,"never', b"%s,7,next", b"%s,8,last"],
    "broken quotes": [b'%s,5,"a"b', b'%s,7,"next"', b'%s,8,5" pipe'],
    "characters that only look like line ends": [b"%s,5,\xe2\x80\xa8\x0c\x1d\xc2\x85", b"%s,7,\x0b"],
}


@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize(
    ("app", "form", "header"),
    [
        ("iot", "csv", b"timestamp,value,note"),
        ("trending", "counts", b"timestamp,value,note"),
        ("stocks", "csv", b"Date,Close,note"),
    ],
)
def test_a_record_of_csv_is_a_message_whatever_is_in_its_fields(
    app: str, form: str, header: bytes, records: list[bytes], tmp_path: Path
) -> None:
    written = [record % (b"2026-01-0%d" % day) for day, record in enumerate(records, 1)]
    path = tmp_path / "A.csv"
    path.write_bytes(b"\r\n".join([header, *written]))
    job = Job.of(app_of(app), form, recording=path)
    messages = [message.value for message in RecordedMessages(job, [path]).messages()]
    before = b"symbol," + header + b"\nA," if app == "stocks" else header + b"\n"
    assert messages == [before + record for record in written]
    stream = job.form.source(Feed("t", "localhost:1"), job.settings)
    decoded = stream.reading.kafka_source.decode(Messages.of(messages))
    good = [row for row, record in enumerate(records) if b'"never' not in record and b'"a"b' not in record]
    assert decoded.frame.height == len(good)
    assert decoded.refused.tolist() == sorted({*range(len(messages))} - {*good})


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("app", "form", "name", "lines", "header"),
    [
        ("iot", "csv", "readings.csv", READINGS, True),
        ("iot", "json", "readings.jsonl", JSON, False),
        ("trending", "counts", "counts.csv", READINGS, True),
        ("trending", "jetstream", "posts.jsonl", POSTS, False),
        ("stocks", "csv", "A.csv", DAYS, True),
        ("stocks", "alpaca", "trades.jsonl", TRADES, False),
        ("logs", "access", "access.log", LOG, False),
        ("supernova", "fink", "alerts.jsonl", ALERT, False),
    ],
)
def test_each_line_is_a_message_without_what_windows_and_gzip_put_around_it(
    app: str, form: str, name: str, lines: list[bytes], header: bool, packed: bool, tmp_path: Path
) -> None:
    data = BOM + b"\r\n".join(lines) + b"\r\n"
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    job = Job.of(app_of(app), recording=path)
    assert job.form.name == form
    messages = [message.value for message in RecordedMessages(job, [path]).messages()]
    before = b"symbol,Date,Close\nA," if app == "stocks" else lines[0] + b"\n"
    assert messages == ([before + line for line in lines[1:]] if header else lines)


@pytest.mark.parametrize("name", APPS)
def test_what_can_not_be_replayed_is_said_before_anything_is_started(name: str, tmp_path: Path) -> None:
    app, path = app_of(name), tmp_path / "some.csv"
    path.write_bytes(BOM)
    with pytest.raises(ValueError, match=r"some.csv is empty: there is nothing to replay"):
        Job.of(app, recording=path)
    path.write_bytes(gzip.compress(b"\r\n".join(READINGS))[:30])
    with pytest.raises(ValueError, match=r"some.csv can't be replayed: the gzip file is incomplete"):
        Job.of(app, recording=path)
    path = tmp_path / "some.bin"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(ValueError, match=f"some.bin matches no format of {name}; name one with --format: "):
        Job.of(app, recording=path)


def test_a_packed_file_that_ends_too_early_ends_the_replay(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv.gz"
    lines = [READINGS[0], *(b"2026-01-01 00:00:%02d,%d" % (n % 60, n * n) for n in range(40_000))]
    path.write_bytes(gzip.compress(b"\n".join(lines))[:-2_000])
    job = Job.of(app_of("iot"), recording=path)
    with pytest.raises(ValueError, match=r"readings.csv.gz can't be replayed: the gzip file is incomplete"):
        list(RecordedMessages(job, [path]).messages())


def test_what_is_not_utf_8_goes_on_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    path.write_bytes(b"timestamp,value\n2026-01-01 00:00:00,\xe9\n")
    for name in ("iot", "trending"):
        job = Job.of(app_of(name), recording=path)
        (message,) = RecordedMessages(job, [path]).messages()
        assert message.value == b"timestamp,value\n2026-01-01 00:00:00,\xe9"

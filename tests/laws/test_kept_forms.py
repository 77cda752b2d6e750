"""What earlier releases have kept is read by this one, and what a newer one has kept is refused.

`tests/data/kept` has a file for each form of what outlives a process, written by the release that had it. A
change that can't read them needs a new form, which reads the one before.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.agents.ingest import local_positions
from streamgauge.agents.ingest.local_positions import LocalPositions
from streamgauge.operators.archive import manifest
from streamgauge.operators.archive.segment import folder as folder_of
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.consumer.log import merger_state, messages, snapshots
from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.kept_form import WrittenByNewer
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.watermarks.position import Input, inputs_of
from streamgauge.spark_udafs.kafka import offsets
from streamgauge.spark_udafs.kafka.offsets import Offsets
from streamgauge.spark_udafs.merge import buckets
from streamgauge.spark_udafs.merge.buckets import joined_parts

KEPT = Path(__file__).resolve().parents[1] / "data" / "kept"
NEWEST = {
    "merger": snapshots.FORM,
    "spark-offsets": offsets.FORM,
    "agent-positions": local_positions._FORM,
    "archive-first": manifest.FORM,
    "spark-state": buckets.FORM,
}
INPUTS = inputs_of({"posts": 2})


def kept(what: str, form: int) -> Any:
    return json.loads((KEPT / f"{what}-{form}.json").read_text())


def record(message: dict[str, Any]) -> Record:
    headers = {name: value.encode() for name, value in message["headers"].items()}
    return Record(base64.b85decode(message["value"]), headers, 0, "")


def merger(files: Any, folder: Path) -> None:
    """Windows continue with what the snapshot knows, and no row is lost or counted twice."""
    snapshot = Snapshot.of(record(files["snapshot"]))
    merging = Merger(described_stream(snapshot.definition), INPUTS)
    merging.restore(snapshot.next_offset, snapshot.state)
    for offset, message in enumerate(files["log"], snapshot.next_offset):
        merging.offer(messages.decode(record(message)), offset)
    tables = [*merging.close(), *merging.close_all()]
    rows = [row for table in tables for row in table.select(["window_start", "posts"]).to_pylist()]
    by_minute: dict[int, int] = {}
    for row in rows:
        by_minute[row["window_start"].minute] = by_minute.get(row["window_start"].minute, 0) + row["posts"]
    # Two partitions with a post every two seconds for five minutes; two were handed over before.
    assert by_minute == dict.fromkeys(range(2, 5), 60), by_minute
    assert merging.state.account.read == merging.state.account.counted == 300
    assert snapshot.memory == {"rules": "{}"} and snapshot.delivery == "exactly_once"


def spark_offsets(fields: Any, folder: Path) -> None:
    read = Offsets.from_json(fields)
    known = read.known["posts", 0]
    assert (read.query, read.ends) == ("q1", {("posts", 0): 12})
    assert (known.position.offset, known.account.counted) == (7, 5)
    assert known.position.time.rows == 20 and read.topics == {"posts": "id"}


def agent_positions(fields: Any, folder: Path) -> None:
    path = folder / "web-1" / "positions" / "logs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fields))
    positions = LocalPositions(folder, "web-1", "logs")
    assert positions.positions == {"/var/log/app.log": {"inode": 7, "offset": 1200}}
    positions.keep({"/var/log/app.log": {"inode": 7, "offset": 1300}})
    assert LocalPositions(folder, "web-1", "logs").positions["/var/log/app.log"]["offset"] == 1300


def archive_first(fields: Any, folder: Path) -> None:
    where, store = Input("posts", 0), LocalStore(folder)
    path = folder / folder_of(*where) / "_first.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fields))
    assert manifest.record_first(store, *where, 99) == 40


def spark_state(fields: Any, folder: Path) -> None:
    rows = Stream.from_schema({"lang": pl.String, "user": pl.Int64, "at": pl.Datetime("us")}, time="at")
    posts = rows.group_by("lang").tumbling("1m").agg(posts=count(), users=distinct("user"))
    state = base64.b85decode(fields["table"])
    table = joined_parts(schema_of(posts), [state, state])
    assert sorted(zip(table["lang"].to_pylist(), table["posts"].to_pylist())) == [
        *([("de", 2)] * 2),
        *([("en", 3)] * 2),
    ]


READ: dict[str, Callable[[Any, Path], None]] = {
    "merger": merger,
    "spark-offsets": spark_offsets,
    "agent-positions": agent_positions,
    "archive-first": archive_first,
    "spark-state": spark_state,
}


def test_the_form_that_is_written_and_the_one_before_are_read(tmp_path: Path) -> None:
    assert READ.keys() == NEWEST.keys()
    for what, newest in NEWEST.items():
        for form in range(max(1, newest - 1), newest + 1):
            READ[what](kept(what, form), tmp_path / f"{what}-{form}")


def test_what_is_kept_carries_its_form() -> None:
    for what, newest in NEWEST.items():
        if what not in ("merger", "spark-state"):  # a table as it is, where its form is 1
            assert kept(what, newest)["form"] == newest > 1
    sent = record(kept("merger", NEWEST["merger"])["snapshot"])
    fields = json.loads(zlib.decompress(sent.value))
    assert fields["form"] == snapshots.FORM and json.loads(fields["state"])["form"] == merger_state.FORM


def newer(what: str) -> Any:
    """What is kept, as a release might write it that has another form."""
    fields = kept(what, NEWEST[what])
    if what == "spark-state":
        state = b"form %d " % (NEWEST[what] + 1) + base64.b85decode(fields["table"])
        return {"table": base64.b85encode(state).decode()}
    if what != "merger":
        return {**fields, "form": NEWEST[what] + 1}
    message = fields["snapshot"]
    value = json.loads(zlib.decompress(base64.b85decode(message["value"])))
    value["form"] = NEWEST[what] + 1
    message["value"] = base64.b85encode(zlib.compress(json.dumps(value).encode())).decode()
    return fields


@pytest.mark.parametrize("what", NEWEST)
def test_a_newer_form_is_refused_and_left_as_it_is(what: str, tmp_path: Path) -> None:
    said = rf"was written by a newer version of streamgauge \(format version {NEWEST[what] + 1}; "
    with pytest.raises(WrittenByNewer, match=said):
        READ[what](newer(what), tmp_path)


def test_a_newer_state_or_delta_is_no_damage() -> None:
    state = json.loads(merger_state.EMPTY_STATE)
    with pytest.raises(WrittenByNewer, match="the merger's state was written by a newer version"):
        merger_state.read_state(json.dumps({**state, "form": merger_state.FORM + 1}))
    delta = record(kept("merger", 2)["log"][0])
    delta.headers["form"] = str(messages.FORM + 1).encode()  # type: ignore[index]
    with pytest.raises(WrittenByNewer, match="a delta of the table topic was written by a newer version"):
        messages.decode(delta)

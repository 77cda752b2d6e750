"""An archive holds each message of a topic once, as it was, whoever wrote it and however it ended."""

from __future__ import annotations

import resource
import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from streamgauge.agents.archive.archiver import ArchiveOptions, Archiver
from streamgauge.operators.archive.chain import segments, topics_of
from streamgauge.operators.archive.segment import APPENDED, CREATED, ArchiveError
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.archive.verify import verify
from streamgauge.operators.kafka.reader import EARLIEST, Reader

from ...waiting import until

pytestmark = pytest.mark.kafka


class Topic:
    """A topic of the embedded broker, and an archive beside it."""

    def __init__(self, kafka: Any, folder: Path, partitions: int) -> None:
        self.name = f"archived-{uuid.uuid4().hex[:8]}"
        self.config = {"bootstrap.servers": kafka.bootstrap_servers}
        self.folder, self.store, self.partitions = folder, LocalStore(folder), partitions
        self.kafka = kafka
        kafka.create_topic(self.name, partitions)

    def send(self, messages: int, partition: int = 0, first: int = 0, **more: Any) -> None:
        producer = Producer(self.config)
        for number in range(first, first + messages):
            producer.produce(self.name, f"value {number}".encode(), partition=partition, **more)
        assert producer.flush(120) == 0

    def archiver(self, group: str | None = None, **options: Any) -> Archiver:
        return Archiver(self.config, [self.name], self.store, ArchiveOptions(**options), group)

    def table(self, partition: int = 0) -> pa.Table:
        """The archived messages of a partition, whose files are an unbroken chain."""
        chain = segments(self.store, self.name, partition)
        return pa.concat_tables([pq.ParquetFile(self.folder / one.path).read() for one in chain])

    def values(self, partition: int = 0) -> list[bytes]:
        return self.table(partition).column("value").to_pylist()


@pytest.fixture
def topic(kafka: Any, tmp_path: Path) -> Callable[..., Topic]:
    return lambda partitions=1: Topic(kafka, tmp_path / "archive", partitions)


def test_a_shorter_file_of_another_archiver_leaves_nothing_out(
    topic: Callable[..., Topic], tmp_path: Path
) -> None:
    posts, others = topic(), LocalStore(tmp_path / "other")
    posts.send(40)
    Archiver(posts.config, [posts.name], others).run_once()
    posts.send(160, first=40)

    class Overtaken(LocalStore):
        """Another archiver publishes first, and less than this one has read."""

        overtaken = False

        def create(self, path: str, data: pa.Buffer) -> bool:
            if path.endswith(".parquet") and not self.overtaken:
                self.overtaken = True
                shutil.copytree(tmp_path / "other", posts.folder, dirs_exist_ok=True)
            return super().create(path, data)

    archiver = Archiver(posts.config, [posts.name], Overtaken(posts.folder), ArchiveOptions(size_bytes=800))
    account = archiver.run_once()
    assert posts.values() == [b"value %d" % number for number in range(200)]
    assert (account.messages, account.dropped_files, account.lost) == (160, 1, 0)


def test_messages_are_archived_as_they_are(topic: Callable[..., Topic]) -> None:
    posts = topic(2)
    producer = Producer(posts.config)
    sent = [
        (b"k", b'{"a":1}', [("h", b"1"), ("h", None)], 1_767_225_600_000),
        (None, b"\xff\x00", [], 5),
        (b"", None, [("trace", b"")], 1_767_225_600_001),
    ]
    for key, value, headers, time in sent:
        producer.produce(posts.name, value, key, 1, timestamp=time, headers=headers)
    assert producer.flush(120) == 0
    account = posts.archiver().run_once()
    assert (account.messages, account.files) == (3, 1)
    table = posts.table(1)
    assert table.column("offset").to_pylist() == [0, 1, 2]
    assert table.column("key").to_pylist() == [b"k", None, b""]
    assert table.column("value").to_pylist() == [b'{"a":1}', b"\xff\x00", None]
    assert table.column("timestamp_type").to_pylist() == [CREATED] * 3
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [1_767_225_600_000, 5, 1_767_225_600_001]
    assert table.column("headers").to_pylist() == [
        [{"key": k, "value": v} for k, v in headers] for _, _, headers, _ in sent
    ]
    [segment] = segments(posts.store, posts.name, 1)
    assert (segment.first_offset, segment.next_offset, segment.rows) == (0, 3, 3)
    assert (segment.earliest_ms, segment.latest_ms) == (5, 1_767_225_600_001)
    assert topics_of(posts.store) == {posts.name: [0, 1]}
    assert segments(posts.store, posts.name, 0) == []


def test_the_brokers_own_timestamps_are_marked(topic: Callable[..., Topic]) -> None:
    posts = topic()
    admin = AdminClient(posts.config)
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry(
        "message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource("topic", posts.name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(120)
    posts.send(3)
    posts.archiver().run_once()
    assert posts.table().column("timestamp_type").to_pylist() == [APPENDED] * 3


def test_the_next_run_goes_on_where_the_files_end(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(10)
    posts.archiver(size_bytes=30).run_once()
    assert posts.archiver().run_once().files == 0
    posts.send(5, first=10)
    assert posts.archiver().run_once().messages == 5
    assert posts.values() == [f"value {n}".encode() for n in range(15)]


def test_markers_and_aborted_messages_lie_in_ranges_and_in_no_row(topic: Callable[..., Topic]) -> None:
    posts = topic()
    producer = Producer({**posts.config, "transactional.id": posts.name})
    producer.init_transactions(120)
    for number, commit in enumerate([True, False, True]):
        producer.begin_transaction()
        producer.produce(posts.name, b"%d" % number, partition=0)
        assert producer.flush(120) == 0
        producer.commit_transaction(120) if commit else producer.abort_transaction(120)
    until(
        lambda: posts.archiver().run_once().files or segments(posts.store, posts.name, 0)[-1].next_offset == 6
    )
    posts.archiver().run_once()
    assert posts.values() == [b"0", b"2"]


def test_a_silent_topics_file_appears_within_the_interval(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(4)
    stop = threading.Event()
    archiver = posts.archiver(posts.name, interval_seconds=1.0)
    thread = threading.Thread(target=archiver.run, args=(stop,))
    thread.start()
    try:
        until(lambda: archiver.account.messages == 4)
    finally:
        stop.set()
        thread.join(120)
    assert posts.values() == [f"value {n}".encode() for n in range(4)]


def test_of_two_archivers_of_one_partition_one_file_stays(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(6)
    paused = posts.archiver()
    paused._begin(paused._inputs())
    paused._assign()
    with Reader(posts.config, {(posts.name, 0): EARLIEST}, headers=True) as reader:
        paused._add(next(reader.read_to({(posts.name, 0): 4})).slice(0, 4))
    posts.archiver().run_once()
    posts.send(2, first=6)
    assert paused.run_once().messages == 2
    assert posts.values() == [f"value {n}".encode() for n in range(8)]


def test_a_late_file_of_a_paused_archiver_is_dropped(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(6)
    paused = posts.archiver()
    paused._begin(paused._inputs())
    paused._assign()
    with Reader(posts.config, {(posts.name, 0): EARLIEST}, headers=True) as reader:
        paused._add(next(reader.read_to({(posts.name, 0): 6})).slice(0, 4))
    posts.archiver().run_once()
    paused._cut(*paused.assigned)
    assert (paused.account.files, paused.account.dropped_files) == (0, 1)
    assert [paused._next_offset(where) for where in paused.assigned] == [6]
    paused.close()
    assert posts.values() == [f"value {n}".encode() for n in range(6)]


def test_what_the_topic_has_lost_stops_an_archive_or_is_noted(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(4)
    posts.archiver().run_once()
    posts.send(4, first=4)
    from confluent_kafka import TopicPartition

    admin = AdminClient(posts.config)
    admin.delete_records([TopicPartition(posts.name, 0, 6)])[TopicPartition(posts.name, 0)].result(120)
    with pytest.raises(ArchiveError, match=r"the offsets 4 to 5 of .* are gone from the topic"):
        posts.archiver().run_once()
    account = posts.archiver(skip_lost=True).run_once()
    assert (account.messages, account.lost) == (2, 2)
    assert segments(posts.store, posts.name, 0)[-1].lost == ((4, 6),)
    assert posts.values() == [f"value {n}".encode() for n in (0, 1, 2, 3, 6, 7)]


class Full(LocalStore):
    """A disk that is full while `free` is 0: a file of the limit's size can't be written."""

    free = 0

    def create(self, path: str, data: pa.Buffer) -> bool:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if not self.free and path.endswith(".parquet"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
        try:
            return super().create(path, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_it_and_the_next_run_resumes(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(4)
    posts.archiver().run_once()
    posts.send(4, first=4)
    store = Full(posts.folder)
    archiver = Archiver(posts.config, [posts.name], store)
    with pytest.raises(ArchiveError, match=rf"topic={posts.name}/partition=0/0+4\.parquet can't be written"):
        archiver.run_once()
    assert (archiver.account.messages, archiver.account.files) == (0, 0)
    assert posts.values() == [f"value {n}".encode() for n in range(4)]
    assert not [path for path in posts.folder.rglob(".*") if path.is_file()]
    store.free = 1
    assert Archiver(posts.config, [posts.name], store).run_once().messages == 4
    assert posts.values() == [f"value {n}".encode() for n in range(8)]
    [check] = verify(posts.store, {posts.name: [0]})
    assert check.problems == [] and check.unhashed == 0


def test_a_missing_last_file_is_refused_by_archivers(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(4)
    posts.archiver(size_bytes=14).run_once()
    posts.store.remove(segments(posts.store, posts.name, 0)[-1].path)
    with pytest.raises(ArchiveError, match=r"0002\.parquet is missing: .*_manifest.*restore the file"):
        posts.archiver().run_once()


def test_a_recreated_topic_is_refused(topic: Callable[..., Topic]) -> None:
    posts = topic()
    posts.send(2)
    posts.archiver().run_once()
    admin = AdminClient(posts.config)
    admin.delete_topics([posts.name])[posts.name].result(120)
    until(lambda: posts.name not in admin.list_topics(timeout=120).topics)
    posts.kafka.create_topic(posts.name, 1)
    posts.send(3)
    with pytest.raises(ArchiveError, match="deleted and recreated"):
        posts.archiver().run_once()

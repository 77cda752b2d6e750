"""State that a worker process keeps between micro-batches: its connections, and the ids it has seen.

Spark gives a process one task after another. Readers stay connected and keep prefetched messages; if a
partition's next range goes to another process, that costs one seek. Ids are only kept to save work: a process
that lacks them reads the rows before the range once more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from ...operators.archive.recording import Recording
from ...operators.definition.stream import Stream
from ...operators.definition.tables import LookupTable
from ...operators.formats.messages import Messages
from ...operators.kafka.client_config import producer_config
from ...operators.kafka.faults import may_pass, passing
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.produce import Faults, connected_producer, produce
from ...operators.kafka.reader import CorruptError, PositionGone, Reader, ReadError
from ...operators.sketching.dead_letters import LARGEST_LETTER, DeadLetter
from ...operators.sketching.late_messages import LateMessage
from ...operators.sketching.message_warnings import Remarks
from ...operators.sketching.partition_buffer import PartitionBuffer
from ...operators.steps.look_back import LookBack
from ...operators.steps.table_reader import TableReader
from ...operators.steps.table_readers import bound
from ...sketches.core.errors import RunError
from .cluster import Cluster, group_refused, reporting_consumer
from .connection_pool import ConnectionPool
from .offsets import TopicPartition
from .options import KafkaOptions

log = logging.getLogger("streamgauge.kafka")

_MOST_READERS = 32
_PREFETCH_KBYTES = 8192
"""How much the reader of one partition prefetches: 256 MiB for all readers of a process."""
_MOST_OTHERS = 8
_MOST_SEEN = 256
"""The most indexes of ids to keep: one for each partition and each stream that runs together."""
_NO_PROGRESS_SECONDS = 600.0
_REPORT_SECONDS = 10.0
_LETTER_BYTES = 16 * 1024 * 1024

_readers: ConnectionPool[Reader] = ConnectionPool(_MOST_READERS, lambda reader: reader.close())
_reporters: ConnectionPool[Any] = ConnectionPool(_MOST_OTHERS, lambda reporter: reporter.close())
# A producer is only put back after all its messages have arrived.
_producers: ConnectionPool[Producer] = ConnectionPool(_MOST_OTHERS, lambda producer: producer.purge())
_seen: ConnectionPool[tuple[int, LookBack]] = ConnectionPool(_MOST_SEEN, lambda seen: None)
_joins: ConnectionPool[Any] = ConnectionPool(_MOST_READERS, lambda sides: None)
_tables: ConnectionPool[TableReader] = ConnectionPool(_MOST_OTHERS, lambda table: table.close())
_remarks: dict[Any, Remarks] = {}
_logged: dict[Any, set[tuple[str, str]]] = {}
"""Warnings already logged about a topic's messages, by all streams of a query."""
_recordings: dict[tuple[str, str], Recording] = {}


def reading(
    options: KafkaOptions, place: TopicPartition, start: int, end: int, at_once: int
) -> Iterator[Messages]:
    """Yield the messages of a range of offsets, at most `at_once` at a time.

    Waits for unreachable brokers. Raises `RunError` for offsets that no longer exist, unless the options say
    to continue without them.
    """
    if start >= end:
        return
    if options.archive is not None:
        yield from _archived(options.archive, place, end).read(place[1], start, end, at_once)
        return
    key = (_identity(options), place, options.reads_headers, options.corrupt)
    reader = _readers.borrow(key)
    try:
        if reader is None:
            reader = Reader(
                _reader_config(options),
                {place: start},
                headers=options.reads_headers,
                corrupt=options.corrupt,
            )
        elif reader.positions()[place] != start:
            reader.seek({place: start})
        yield from reader.read_to({place: end}, at_once, _NO_PROGRESS_SECONDS)
    except ReadError as error:
        if reader is not None:
            reader.close()
        message = str(error)
        if isinstance(error, PositionGone):
            message = f"{error.lost}; set the option failOnDataLoss to false to continue with the rest"
        if isinstance(error, CorruptError):
            message += ", or with the option corruptBatches"
        raise RunError(f"reading {place[0]}-{place[1]} from {start} to {end}: {message}") from None
    except BaseException:
        # A cancelled task leaves its reader in the middle of the range.
        if reader is not None:
            reader.close()
        raise
    _readers.put(key, reader)


def _archived(archive: str, place: TopicPartition, end: int) -> Recording:
    """Return a topic's recording that contains a partition up to an offset; footers are read once."""
    key = archive, place[0]
    if key not in _recordings or _recordings[key].bounds(place[1])[1] < end:
        _recordings[key] = Recording.open(*key)
    return _recordings[key]


def remarks_on(options: KafkaOptions, topic: str) -> Remarks:
    """Return this process's warnings about a topic's messages in a stream, shared by its tasks."""
    assert options.stream is not None
    key = (_identity(options), topic, options.stream.fingerprint())
    if key not in _remarks:
        stream = options.stream.reading.of_topic(topic)
        source, logged = stream.reading.kafka_source, _logged.setdefault(key[:2], set())
        _remarks[key] = Remarks(topic, source.members, options.letters_of(topic), stream, logged)
    return _remarks[key]


@contextmanager
def with_tables(*streams: Stream) -> Iterator[list[Stream]]:
    """Bind streams to the current rows of the tables that they join.

    This process caches the tables and continues from their last position; a table that no task needs for a
    minute is dropped.
    """
    readers: dict[Any, TableReader] = {}
    for table in (table for stream in streams for table in stream.reading.tables):
        if (key := _table_key(table)) not in readers:
            readers[key] = _tables.borrow(key) or TableReader(table)
    try:
        for reader in readers.values():
            reader.catch_up()
    except BaseException:
        for reader in readers.values():
            reader.close()
        raise
    try:
        yield [bound(stream, lambda table: readers[_table_key(table)].contents) for stream in streams]
    finally:
        for key, reader in readers.items():
            _tables.put(key, reader)


def _table_key(table: LookupTable) -> Any:
    return table.definition(), *sorted(table.source.settings.items())


@contextmanager
def kept_join(options: KafkaOptions, key: Any) -> Iterator[SimpleNamespace]:
    """Lend this process's state of a join's two partitions, as `value`; it is dropped if the caller fails."""
    key = (_identity(options), *key)
    kept = SimpleNamespace(value=_joins.borrow(key))
    yield kept
    if kept.value is not None:
        _joins.put(key, kept.value)


def rows_from(options: KafkaOptions, place: TopicPartition, wanted: int, start: int) -> int:
    """Like `replay_from`, but for the rows of a join that wait for partners."""
    low = _beginning(options, place)
    if low > wanted:
        log.warning(
            "%s-%s was trimmed: rows at its offsets %s … %s waited for partners, and find none any more; "
            "set the topic's retention to more than the time that the join looks back",
            *place,
            wanted,
            min(low, start) - 1,
        )
    return min(max(wanted, low), start)


def _beginning(options: KafkaOptions, place: TopicPartition) -> int:
    """Return the first offset that a partition still has."""
    cluster = Cluster(options)
    low = cluster.beginnings([place])[place]
    cluster.close()
    return low


def ids_seen(options: KafkaOptions, query: str, place: TopicPartition, offset: int) -> LookBack | None:
    """Return the ids that a query has seen in a partition up to an offset, if this process has them.

    The caller then owns them, so a failing task leaves no partly updated ids behind.
    """
    index = _seen.borrow(_ids_key(options, query, place))
    return index[1] if index is not None and index[0] == offset else None


def keep_ids(options: KafkaOptions, query: str, place: TopicPartition, offset: int, seen: LookBack) -> None:
    """Keep the ids that a query has seen in a partition up to an offset."""
    _seen.put(_ids_key(options, query, place), (offset, seen))


def _ids_key(options: KafkaOptions, query: str, place: TopicPartition) -> Any:
    # Streams that run together share a query, but each has seen different ids.
    assert options.stream is not None
    return _identity(options), options.stream.fingerprint(), query, place


def replay_from(options: KafkaOptions, place: TopicPartition, wanted: int, start: int) -> int:
    """Return where to start to learn ids again: at `wanted`, or at the first offset that the topic still has.

    The result is at most `start`. Warns about ids that the topic no longer has.
    """
    low = _beginning(options, place)
    if low > wanted:
        log.warning(
            "%s-%s was trimmed: ids last seen at its offsets %s … %s may be counted twice; set the topic's "
            "retention to more than the time that deduplicate() looks back",
            *place,
            wanted,
            min(low, start) - 1,
        )
    return min(max(wanted, low), start)


def report_known(options: KafkaOptions, group: str, place: TopicPartition, offset: int, text: str) -> None:
    """Commit what is known about a partition up to an offset, as the offset's metadata text.

    If this keeps failing for some seconds, it gives up: the next micro-batch then reads this batch's range
    again. Raises `PermissionError` if the user may not use the group.
    """
    key = (_identity(options), group)
    reporter = _reporters.borrow(key) or reporting_consumer(options.config, group)
    try:
        _report(reporter, group, place, offset, text)
    finally:
        _reporters.put(key, reporter)


def _report(reporter: Any, group: str, place: TopicPartition, offset: int, text: str) -> None:
    trying = Retrying(
        retry=retry_if_exception(may_pass),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(_REPORT_SECONDS),
        reraise=True,
    )
    try:
        trying(
            reporter.commit,
            offsets=[Partition(*place, offset, text)],
            asynchronous=False,
        )
    except KafkaException as problem:
        error = problem.args[0]
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise group_refused(group) from None
        if not passing(error):
            raise RunError(
                f"progress can't be committed to the consumer group {group!r}: {error.str()}"
            ) from None
        log.warning("progress was not committed to the consumer group %s: %s", group, error.str())


class Letters:
    """Sends dead letters, and late messages, to their topics; without a topic they are only counted.

    They are sent before the range's progress is committed, so none is lost. A range that is read again sends
    its letters again, with the same offsets in their headers.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._waiting: list[Outgoing] = []
        self._bytes = 0

    def take(self, intake: PartitionBuffer, start: int) -> None:
        """Add the messages that were refused, from offset `start` on."""
        self.take_of_all([intake], start)

    def take_of_all(self, intakes: Sequence[PartitionBuffer], start: int) -> None:
        """Add the messages that several streams refused: only once if for the same reason."""
        dead = dict.fromkeys(letter for intake in intakes for letter in intake.dead_letters)
        late = dict.fromkeys(message for intake in intakes for message in intake.late)
        self.add([letter for letter in dead if letter.offset >= start])
        self._add_late([message for message in late if message.letter.offset >= start])
        for intake in intakes:
            intake.dead_letters.clear()
            intake.late.clear()
            intake.dead_bytes = 0

    def skip(self, messages: Messages) -> None:
        """Account for skipped messages of an unreadable range, if this batch has any."""
        if (broken := messages.broken) is not None:
            self.add([DeadLetter.of_range(broken, broken.first, broken.next)])

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Add letters."""
        for letter in letters:
            topic = self._options.letters_of(letter.topic)
            if topic is not None:
                self._waiting.append(letter.outgoing(topic))
                self._bytes += letter.size
        if self._bytes > _LETTER_BYTES:
            self.deliver()

    def _add_late(self, messages: Sequence[LateMessage]) -> None:
        for message in messages:
            topic = self._options.late_messages_of(message.letter.topic)
            if topic is not None:
                self._waiting.append(message.outgoing(topic))
                self._bytes += message.size
        if self._bytes > _LETTER_BYTES:
            self.deliver()

    def deliver(self) -> None:
        """Send all letters, and wait until all are acknowledged, however long brokers are unreachable.

        Raises `RunError` if waiting won't help.
        """
        if not self._waiting:
            return
        key = _identity(self._options)
        producer = _producers.borrow(key)
        if producer is None:  # a producer with nothing to send is falsy
            producer = connected_producer(producer_config(self._options.config, LARGEST_LETTER))
        while self._waiting:
            faults, failed = Faults(self._waiting), dict(enumerate(self._waiting))
            for number, letter in enumerate(self._waiting):
                produce(producer, letter, partial(_note, failed, faults, number))
            producer.flush()
            self._waiting = list(failed.values())
            if self._waiting and (cut := faults.mended(self._waiting)) is not None:
                self._waiting = cut
            elif faults.error is not None:
                raise RunError(
                    f"dead letters and late messages can't be sent: {faults.exception(faults.error)}"
                )
        _producers.put(key, producer)
        self._bytes = 0


def _note(
    failed: dict[int, Outgoing], faults: Faults, number: int, error: KafkaError | None, message: Message
) -> None:
    faults.record(error, message)
    if error is None:
        del failed[number]


def _reader_config(options: KafkaOptions) -> dict[str, Any]:
    lossy = {} if options.fail_on_data_loss else {"auto.offset.reset": "earliest"}
    return {"queued.max.messages.kbytes": _PREFETCH_KBYTES, **options.config, **lossy}


def _identity(options: KafkaOptions) -> Any:
    return (*sorted(options.config.items()), options.fail_on_data_loss)

"""Planning a run: check existing state, create what the run needs, and build its plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

from ...definition.sources import KafkaSource
from ...definition.stream import Stream
from ...formats.decode import check_importable
from ...kafka.broker_wait import wait_for_brokers
from ...kafka.concurrent_calls import call_for_each
from ...kafka.topics import Admin, admin, end_offsets, ensure_topic, id_of, partitions_of, remove
from ...sinks.sink import Origin, SinkTopic, common_keys, keys_together, topics_of
from ...sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ...watermarks.position import inputs_of
from ..error_context import in_stream
from ..forwarding_options import check_forwarding, forwarding_partitions
from ..group.co_partitioning import check_alike, check_joined, check_joins
from ..group.committed import LONE
from ..group.ephemeral_groups import group_name, remove_leftovers
from ..group.group_state_check import GroupState, commit_starts
from ..group.input_topics import InputTopics, check_apart, input_topics
from ..log.messages import TOPIC_CONFIG as TABLE
from ..options import RunOptions
from ..run_plan import Plan, Plans
from ..worker.process import prepare_workers, release_workers


def plans_of(streams: Mapping[str, Stream], options: Mapping[str, RunOptions]) -> Plans:
    """Plan what a run's workers and mergers do; on return, topics exist and worker processes are loading.

    Streams and their options are by name, a lone stream's is `LONE`; options that apply to a whole run are
    the same for all. Raises what `runner.start` raises.
    """
    try:
        return _plan_streams(streams, options)
    except BaseException:
        release_workers()
        raise


def _plan_streams(streams: Mapping[str, Stream], options: Mapping[str, RunOptions]) -> Plans:
    shared = next(iter(options.values()))
    sources = {name: _sources(name, stream) for name, stream in streams.items()}
    _check_together(sources)
    check_joins(streams)
    settings = next(iter(sources.values()))[0].settings
    for name, stream in streams.items():
        with in_stream(name):
            check_forwarding(stream, options[name])
            check_joined(stream, shared.delivery, settings)
            if shared.workers > 1:
                _check_importable(stream)
    if shared.workers > 1:
        prepare_workers(streams.values(), shared.workers)
    client = admin(settings)
    wait_for_brokers(client, shared.connect_seconds)
    for table in (table for stream in streams.values() for table in stream.reading.tables):
        partitions_of(admin(table.source.settings), table.topic)
    others = {shared.dead_letters, shared.late}
    topics_by_stream = {name: input_topics(client, own, others) for name, own in sources.items()}
    for name, stream in streams.items():
        with in_stream(name):
            check_alike(stream, topics_by_stream[name].partitions)
    topics = _all(topics_by_stream.values())
    group_id = shared.group_id or _own_group(client, min(topics.partitions))
    together = tuple(streams) if LONE not in streams else ()
    histories = [
        GroupState(
            client,
            settings,
            group_id,
            stream,
            topics_by_stream[n].partitions,
            topics_by_stream[n].ids,
            n,
            together,
        )
        for n, stream in streams.items()
    ]
    named = shared.group_id is not None
    # Several streams ask the same about their own topics; concurrently, they wait only as long as one.
    if named:
        call_for_each(GroupState.read, histories)
    wanted = [_wanted_topics(own, options[own.name], named) for own in histories]
    written = [topic.name for its in wanted for topic in its]
    for own in sources.values():
        named_too = [topic for source in own for topic in source.topics if topic == shared.dead_letters]
        check_apart(own, [*written, *named_too])
    with nullcontext() if named else _removed_if_it_fails(client, histories):
        tables = call_for_each(
            lambda own: ensure_topic(client, own.table_topic, shared.table_partitions, TABLE), histories
        )
        partitions = {history.name: count for history, count in zip(histories, tables)}
        if named:
            call_for_each(GroupState.claim, histories)
        _make_besides(client, shared, topics.partitions)
        for history, its in zip(histories, wanted):
            for topic in its:
                ensure_topic(client, topic.name, topic.partitions or partitions[history.name], topic.config)
        bounded, from_now = shared.until == "latest", shared.start == "latest"
        ends = end_offsets(client, inputs_of(topics.partitions)) if bounded or from_now else {}
        starts = commit_starts(histories, ends if from_now else None)
        return Plans.of(
            Plan(
                own.stream,
                group_id,
                own.table_topic,
                own.partitions,
                partitions[own.name],
                options[own.name],
                ends={where: ends[where] for where in inputs_of(own.partitions)} if bounded else None,
                starts=starts[own.name],
                counted={w: place.position.offset for w, place in own.places.items() if place.has_deltas},
                topic_ids=own.topic_ids,
                table_id=id_of(client, own.table_topic),
                sent_partitions=forwarding_partitions(own.stream, client, own.partitions),
                name=own.name,
                together=together,
                split_keys=_split_keys(own, options[own.name], named),
            )
            for own in histories
        )


@contextmanager
def _removed_if_it_fails(client: Admin, histories: Iterable[GroupState]) -> Iterator[None]:
    """Remove the table topics of a run without a group if the block fails: no later run reads them."""
    try:
        yield
    except Exception:
        remove(client, [own.table_topic for own in histories], ())
        raise


def _sources(name: str, stream: Stream) -> Sequence[KafkaSource]:
    with in_stream(name):
        stream.reading.check_on_brokers()
        return stream.complete().reading.kafka_sources


def _check_together(sources: Mapping[str, Sequence[KafkaSource]]) -> None:
    """Raise `ValueError` for streams that can't share a reader."""
    (first, theirs), *others = sources.items()
    for name, own in others:
        if (own[0].settings, own[0].corrupt) != (theirs[0].settings, theirs[0].corrupt):
            raise ValueError(
                f"the streams {first!r} and {name!r} are read from different brokers or with different "
                "settings, but streams that run together share one reader: give both the same "
                "bootstrap_servers, config and corrupt, or run them apart"
            )


def _check_importable(stream: Stream) -> None:
    read = [decoder for source in stream.reading.kafka_sources for decoder in source.decoders]
    for decoder in (*read, *(decoder for table in stream.reading.tables for decoder in table.decoders)):
        check_importable(decoder)


def _all(topics_of_streams: Iterable[InputTopics]) -> InputTopics:
    """The input topics of all streams."""
    partitions: dict[str, int] = {}
    ids: dict[str, str] = {}
    for own in topics_of_streams:
        partitions |= own.partitions
        ids |= own.ids
    return InputTopics(partitions, ids)


def _wanted_topics(history: GroupState, options: RunOptions, named: bool) -> list[SinkTopic]:
    """The topics of a stream's sinks."""
    with in_stream(history.name):
        return topics_of(
            options.all_sinks, Origin.of(history.stream, history.log_group, named), options.table_partitions
        )


def _split_keys(history: GroupState, options: RunOptions, named: bool) -> tuple[str, ...] | None:
    """The keys by which a stream's groups are spread over the partitions of its table topic."""
    window = history.stream.window
    together = keys_together(options.all_sinks, Origin.of(history.stream, history.log_group, named))
    return common_keys([together, None if window is None else window.by])


def _make_besides(client: Admin, options: RunOptions, topics: Collection[str]) -> None:
    """Create the topics for dead letters and late messages, if there are to be any."""
    besides = (*map(options.dead_letter_topic, topics), *map(options.late_topic, topics))
    for beside in dict.fromkeys(besides):
        if beside is not None:
            ensure_topic(client, beside, 1, DEAD_LETTERS)


def _own_group(client: Admin, topic: str) -> str:
    """The name of a run without a group; removes what dead runs left behind first."""
    now = datetime.now(UTC)
    remove_leftovers(client, topic, now)
    return group_name(topic, now)

"""How a run begins: what is there is looked at, what it needs is made, and its plan is drawn up."""

from __future__ import annotations

from datetime import UTC, datetime

from ..definition.stream import Stream
from ..formats.decode import check_importable
from ..kafka.topics import Admin, admin, end_offsets, ensure_topic, id_of, partitions_of
from ..sinks.sink import Origin, topics_of
from ..sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ..sketching.position import inputs_of
from .group.co_partitioning import check_alike, check_joined
from .group.history import GroupHistory, begin
from .group.input_topics import check_apart, input_topics
from .group.nameless import clear_away, group_name
from .log.messages import TOPIC_CONFIG as TABLE
from .options import RunOptions
from .plan import Plan
from .sent_on import check_sent_on, sent_partitions


def plan_of(stream: Stream, options: RunOptions) -> Plan:
    """What a run's workers and merger are to do; its topics are there then.

    Raises what `runner.start` does.
    """
    sources = stream.complete().kafka_sources
    check_sent_on(stream, options)
    settings = sources[0].settings
    check_joined(stream, options.delivery, settings)
    if options.workers > 1:
        tables = [decoder for table in stream.tables for decoder in table.decoders]
        for decoder in (*(decoder for source in sources for decoder in source.decoders), *tables):
            check_importable(decoder)
    client = admin(settings)
    for table in stream.tables:
        partitions_of(admin(table.source.settings), table.topic)
    found = input_topics(client, sources, {options.dead_letters, options.late})
    partitions, ids = found.partitions, found.ids
    check_alike(stream, partitions)
    group_id = options.group_id or _own_group(client, min(partitions))
    history = GroupHistory(client, settings, group_id, stream, partitions, ids)
    if options.group_id is not None:
        history.read()
    origin = Origin.of(stream, group_id, options.group_id is not None)
    wanted = topics_of(options.sinks, origin, options.table_partitions)
    named = [topic for source in sources for topic in source.topics if topic == options.dead_letters]
    check_apart(sources, [*(topic.name for topic in wanted), *named])
    table_partitions = ensure_topic(client, history.table_topic, options.table_partitions, TABLE)
    if options.group_id is not None:
        history.claim()
    besides = (*map(options.dead_letter_topic, partitions), *map(options.late_topic, partitions))
    for beside in dict.fromkeys(besides):
        if beside is not None:
            ensure_topic(client, beside, 1, DEAD_LETTERS)
    for topic in wanted:
        ensure_topic(client, topic.name, topic.partitions or table_partitions, topic.config)
    bounded, from_now = options.until == "latest", options.start == "latest"
    ends = end_offsets(client, inputs_of(partitions)) if bounded or from_now else None
    return Plan(
        stream,
        group_id,
        history.table_topic,
        partitions,
        table_partitions,
        options,
        ends=ends if bounded else None,
        starts=begin([history], ends if from_now else None)[history.name],
        topic_ids=ids,
        table_id=id_of(client, history.table_topic),
        sent_partitions=sent_partitions(stream, client, partitions),
    )


def _own_group(client: Admin, topic: str) -> str:
    """The name of a run of its own; what dead ones left is removed beforehand."""
    now = datetime.now(UTC)
    clear_away(client, topic, now)
    return group_name(topic, now)

"""Faults that no count survives: a run must end and say why, and nothing wrong may have been handed over."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streamgauge.operators.kafka.topics import remove

from ..waiting import until
from .damage import table_topics
from .episode import Episode
from .exact import exact
from .members import PATIENCE, Member
from .posts import ALONE


def _ends_with(member: Member, error: str, text: str) -> None:
    until(lambda: not member.alive, PATIENCE)
    member.gone()
    assert member.failed.startswith(error) and text in member.failed, member.output


def retention_passed(episode: Episode) -> None:
    """The table topic loses deltas of windows that are still open; a new start must not go on."""
    servers = episode.kafka.bootstrap_servers
    (topic,) = table_topics(servers, episode.options["group_id"])
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [TopicPartition(topic, p, -1) for p in range(episode.shape.table_partitions)]
    truth = exact(servers, episode.posts.topics, ALONE[""])
    for done in admin.delete_records(wanted).values():
        done.result(120)
    for member in episode.group.alive:
        member.kill()
    _ends_with(episode.group.join(), "DeltaError", "were deleted before their windows were emitted")
    episode.compare_so_far(truth)


def recreated(episode: Episode) -> None:
    """The input topic is deleted and recreated: neither the run nor a later one of its group goes on."""
    servers = episode.kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    truth = exact(servers, episode.posts.topics, ALONE[""])
    (topic,) = episode.posts.topics
    remove(admin, [topic], [])
    until(lambda: topic not in admin.list_topics(timeout=120).topics, PATIENCE)
    episode.kafka.create_topic(topic, partitions=episode.shape.partitions)
    for member in episode.group.alive:
        _ends_with(member, "TopicError", "was deleted")
    _ends_with(episode.group.join(), "TopicError", "was deleted and recreated")
    episode.compare_so_far(truth)


ENDINGS: dict[str, Callable[[Episode], None]] = {
    "table topic retention passing the oldest open window": retention_passed,
    "a topic deleted and recreated": recreated,
}

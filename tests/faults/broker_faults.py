"""Faults of brokers in a cluster of three; they replace the faults of a single broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .cluster import OFFSETS, TRANSACTIONS, Lane, past_session
from .damage import table_topics
from .episode import CHUNK, Episode
from .injections import AT_POINTS, BROKER, Fault, come_to, matrix
from .members import Member

UNREACHABLE = "one broker unreachable for the group"


def on_three_brokers() -> dict[str, Fault]:
    """Every fault by its name, for an episode whose `kafka` is a `Lane`."""
    others = {name: fault for name, fault in matrix().items() if BROKER not in name}
    return {**others, **dict(_named())}


def _lane(episode: Episode) -> Lane:
    assert isinstance(episode.kafka, Lane)
    return episode.kafka


def _leader(episode: Episode) -> EmbeddedKafka:
    """The leader of a partition by chance, of the input or of the table."""
    return _lane(episode).cluster.leader(episode.random.choice([*episode.posts.ends, *_tables(episode)]))


def _coordinator(episode: Episode) -> EmbeddedKafka:
    return _lane(episode).cluster.group_coordinator(episode.name)


def _transactions(episode: Episode) -> EmbeddedKafka:
    return _lane(episode).cluster.leader((TRANSACTIONS, episode.random.randrange(4)))


def _tables(episode: Episode) -> list[tuple[str, int]]:
    topics = table_topics(episode.kafka.bootstrap_servers, episode.name)
    return [(topic, partition) for topic in topics for partition in range(episode.shape.table_partitions)]


@contextmanager
def _standing(episode: Episode, point: str) -> Iterator[list[Member]]:
    """Members that stand at a point, while nobody else strikes brokers."""
    with _lane(episode).cluster.strike():
        episode.group.begun()
        yield come_to(episode, point, "wait")


def killed(point: str, which: Callable[[Episode], EmbeddedKafka]) -> Fault:
    """Kill -9 of a broker while a member stands at a point; the group does without it, and it comes back."""

    def inject(episode: Episode) -> None:
        cluster = _lane(episode).cluster
        with _standing(episode, point) as standing:
            node = which(episode)
            node.kill()
            cluster.later(lambda: cluster.start_again([node]))
            _resume(standing)
            episode.wait_until_read()

    return inject


def most_killed(point: str, brokers: int) -> Fault:
    """Kill -9 of two brokers or all while a member stands at a point: nobody gets on until they are back."""

    def inject(episode: Episode) -> None:
        cluster = _lane(episode).cluster
        with _standing(episode, point) as standing, cluster.storm():
            nodes = episode.random.sample(cluster.nodes, brokers)
            for node in nodes:
                node.kill()
            try:
                _resume(standing)
                # Longer than transactions of four seconds last, and than members are missed.
                time.sleep(5.0)
            finally:
                cluster.start_again(nodes)

    return inject


def frozen(episode: Episode) -> None:
    """SIGSTOP of a partition's leader until another leads, and back."""
    cluster = _lane(episode).cluster
    with cluster.strike():
        thaw = cluster.freeze(_leader(episode))
        try:
            past_session()
        finally:
            thaw()
        episode.wait_until_read()


def restarted(episode: Episode) -> None:
    """A broker ends in order, as for an upgrade, and is started again."""
    cluster = _lane(episode).cluster
    with cluster.strike():
        node = episode.random.choice(cluster.nodes)
        cluster.later(lambda: cluster.start_again([node]))
        node.stop()
        episode.wait_until_read()


def unreachable(episode: Episode) -> None:
    """The group can't reach one broker, which the others still take for a leader."""
    proxy = _lane(episode).proxy
    proxy.unreachable = {episode.random.randrange(len(proxy.targets))}
    episode.posts.send(CHUNK)
    time.sleep(episode.shape.session_ms / 1000 * 1.5)
    proxy.mend()


def moved(point: str) -> Fault:
    """Other replicas become the leaders of all partitions while a member stands at a point."""

    def inject(episode: Episode) -> None:
        with _standing(episode, point) as standing:
            tables = table_topics(episode.kafka.bootstrap_servers, episode.name)
            topics = [*episode.posts.topics, *tables, OFFSETS, TRANSACTIONS]
            _lane(episode).cluster.move_leaders(topics, episode.random)
            _resume(standing)

    return inject


def _resume(members: Sequence[Member]) -> None:
    for member in members:
        member.send(go=True)


def strikes() -> set[str]:
    """The faults that wait for one another."""
    return {name for name, _ in _named()} - {UNREACHABLE}


def _named() -> Iterator[tuple[str, Fault]]:
    for point in AT_POINTS:
        yield f"kill -9 of a partition's leader, {point}", killed(point, _leader)
        yield f"kill -9 of the group's coordinator, {point}", killed(point, _coordinator)
        yield f"leaders moved, {point}", moved(point)
    for point in ("after the deltas", "after the offsets", "before the merger's place"):
        yield f"kill -9 of two of three brokers, {point}", most_killed(point, 2)
    yield "kill -9 of a coordinator of transactions, after the offsets", killed(AT_POINTS[3], _transactions)
    yield "kill -9 of all brokers, after the deltas", most_killed(AT_POINTS[1], 3)
    yield "SIGSTOP of a partition's leader past its session", frozen
    yield "a broker restarted in order", restarted
    yield UNREACHABLE, unreachable

"""Every fault of the matrix, each injected into a running episode; it ends when the group has come round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from ..faulty_proxy import Request
from ..waiting import until
from .damage import damage_snapshot
from .episode import CHUNK, Episode, Shape
from .members import PATIENCE, Member
from .points import CHECKPOINT, MERGING, POINTS, RESTORING

Fault = Callable[[Episode], None]

AT_POINTS = (*CHECKPOINT, *MERGING)
ADDED = "a partition added"
DAMAGED, FULL = "a snapshot truncated or with flipped bits", "a full disk"
BROKER, ARCHIVER, SERVER = "the broker", "the archiver", "the query server"
_OF_WINDOWS = (*MERGING, RESTORING[1])
"""Points that a stream without windows doesn't come to: it has no callbacks and no snapshots."""
_CHURN_SECONDS = 2.0
_LESS, _MORE = "for less than a transaction lasts", "for more than a transaction lasts"


def come_to(episode: Episode, point: str, how: str) -> list[Member]:
    """Have members come to this point, one or more, and give them."""
    if point in RESTORING:
        # The others take over what one leaves.
        episode.gather(3)
        episode.wait_until_read()
        has = "assigned" if point == RESTORING[0] else "merging"
        until(lambda: episode.group.check() or any(m.state.get(has) for m in episode.group.alive), PATIENCE)
        leaving = next(member for member in episode.group.alive if member.state.get(has))
        episode.group.arm(point, how, but=leaving)
        leaving.send(stop=True)
        members = episode.group.struck()
        leaving.gone()
        return members
    episode.group.arm(point, how)
    # Windows are handed over once time has passed them: a few chunks of events at most.
    for _ in range(12 if point in MERGING else 1):
        episode.posts.send(CHUNK)
        if _within(3.0, lambda: any(member.reached for member in episode.group.members)):
            break
    return episode.group.struck()


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not condition():
        time.sleep(0.01)
    return condition()


def kill(point: str) -> Fault:
    """Kill -9 of a member at a point; another takes its place."""

    def inject(episode: Episode) -> None:
        for member in come_to(episode, point, "kill"):
            member.gone()
        episode.gather(2)

    return inject


def freeze(point: str) -> Fault:
    """SIGSTOP of a member at a point until others have done its work; then it goes on where it stood."""

    def inject(episode: Episode) -> None:
        for member in episode.group.alive[2:]:
            member.stop()
        come_to(episode, point, "freeze")
        # All may have come there; who joins now never does.
        episode.gather(3)
        episode.wait_until_read()
        for member in episode.group.alive:
            member.thaw()

    return inject


LONG_MS = 20_000
"""A broker is back before transactions that last so long have timed out."""


def broker_down(point: str, long: bool) -> Fault:
    """Kill -9 of the broker while a member stands at a point, for less or for more than transactions last."""

    def inject(episode: Episode) -> None:
        episode.group.begun()
        standing = come_to(episode, point, "wait")
        episode.kafka.kill()
        for member in standing:
            member.send(go=True)
        if long:
            time.sleep(episode.shape.transaction_ms / 1000)
        episode.kafka.start()

    return inject


def churn(rounds: int) -> Fault:
    """A member joins or leaves every two seconds."""

    def inject(episode: Episode) -> None:
        for _ in range(rounds):
            began = time.monotonic()
            members = episode.group.alive
            if len(members) < 2 or (len(members) < 4 and episode.random.random() < 0.5):
                episode.join()
            else:
                episode.random.choice(members).send(stop=True)
            episode.posts.send(50)
            time.sleep(max(0.0, began + _CHURN_SECONDS - time.monotonic()))
        episode.gather(2)

    return inject


def connections_reset(episode: Episode) -> None:
    """Every connection of the group is reset, some times in a row."""
    for _ in range(5):
        episode.posts.send(50)
        episode.kafka.proxy.reset()
        time.sleep(0.2)


def delayed(episode: Episode) -> None:
    """All that passes between group and broker comes later, and in the end not at all for a while."""
    episode.kafka.proxy.delay = 0.1
    episode.posts.send(CHUNK)
    time.sleep(1.5)
    episode.kafka.proxy.holding = True
    time.sleep(episode.shape.session_ms / 1000 * 1.5)
    episode.kafka.proxy.mend()


def lost(kind: Request, what: str) -> Fault:
    """A request of a kind, or the answer to one that was carried out, is lost with its connection."""

    def inject(episode: Episode) -> None:
        proxy = episode.kafka.proxy
        (proxy.lose_request if what == "request" else proxy.lose_answer)(kind)
        episode.posts.send(CHUNK)
        _within(3.0, lambda: not proxy.waiting())
        proxy.mend()

    return inject


def rewound(episode: Episode) -> None:
    """The group's offsets are set back, as an operator's tool does, so that input is read twice."""
    episode.group.stop()
    admin = AdminClient({"bootstrap.servers": episode.kafka.bootstrap_servers})
    name = episode.options["group_id"]
    requested = ConsumerGroupTopicPartitions(name, [TopicPartition(*place) for place in episode.posts.ends])
    with episode.kafka.calm():
        known = admin.list_consumer_group_offsets([requested])[name].result(120).topic_partitions
        back = [
            TopicPartition(p.topic, p.partition, max(0, p.offset - episode.random.randrange(1, 200)))
            for p in known
            if p.offset > 0
        ]
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, back)])[name].result(120)
    episode.gather(2)


def aborted(episode: Episode) -> None:
    """Transactions in the input that are aborted."""
    episode.posts.send_aborted(CHUNK)


def poison(episode: Episode) -> None:
    """Messages of every kind that can't be counted."""
    episode.posts.send(CHUNK, poison=60)


def partition_added(episode: Episode) -> None:
    """The input gets one more partition."""
    episode.posts.add_partition()
    # Windows wait for a partition that is known of.
    until(
        lambda: (
            episode.group.check()
            or all(m.state.get("partitions") == episode.posts.partitions for m in episode.group.alive)
        ),
        PATIENCE,
    )


def snapshot_damaged(episode: Episode) -> None:
    """The merger's newest snapshot is cut off or has a flipped bit; the group starts over from it."""
    episode.group.stop()
    damage_snapshot(episode)
    episode.gather(2)


def disk_full(episode: Episode) -> None:
    """A member's disk is full when closed windows are to go there: its run ends, and says why."""
    member = episode.join(disk_full=True)
    for other in [other for other in episode.group.alive if other is not member]:
        other.send(stop=True)
    for _ in range(12):
        episode.posts.send(CHUNK)
        if _within(5.0, lambda: bool(member.failed)):
            break
    until(lambda: bool(member.failed), PATIENCE)
    assert "windows that don't fit in memory can't be stored on disk" in member.failed, member.output
    member.gone()
    member.failed = ""
    episode.gather(2)


def archiver_killed(episode: Episode) -> None:
    """The archiver of the input is killed, anywhere; another takes its place."""
    assert episode.archive is not None
    episode.posts.send(CHUNK)
    episode.archive.kill()


def archiver_frozen(episode: Episode) -> None:
    """The archiver is paused past its session, and comes back with what it held."""
    assert episode.archive is not None
    episode.posts.send(CHUNK)
    episode.archive.freeze(episode.shape.session_ms / 1000 * 1.5)


def server_killed(episode: Episode) -> None:
    """The query server is killed, and started again on what it saved."""
    assert episode.server is not None
    episode.server.restart(in_order=False)


def matrix() -> dict[str, Fault]:
    """Every fault by its name."""
    return dict(_named())


def suits(name: str, shape: Shape) -> bool:
    """Whether a fault can happen to an episode of this shape, and soon enough."""
    if shape.joined and name == ADDED:
        return False  # joined topics can't get partitions at the same moment, and a run ends by name
    if shape.sending and (name in (DAMAGED, FULL) or any(point in name for point in _OF_WINDOWS)):
        return False
    if (ARCHIVER in name and not shape.archived) or (SERVER in name and not shape.served):
        return False
    lasting = shape.transaction_ms >= LONG_MS
    if BROKER in name:
        return lasting == name.endswith(_LESS)
    # What a dead worker leaves open is waited for.
    return not lasting or "a worker" not in name or not any(point in name for point in CHECKPOINT)


def _named() -> Iterator[tuple[str, Fault]]:
    for point in POINTS:
        yield f"kill -9 of a worker, {point}", kill(point)
        yield f"SIGSTOP of a worker past its session, {point}", freeze(point)
    for point in AT_POINTS:
        yield f"kill -9 of {BROKER}, {point}, {_MORE}", broker_down(point, long=True)
        yield f"kill -9 of {BROKER}, {point}, {_LESS}", broker_down(point, long=False)
    yield "a worker joins or leaves every two seconds", churn(4)
    yield "connections reset", connections_reset
    yield "connections delayed, then held", delayed
    for kind in (Request.PRODUCE, Request.END_TRANSACTION, Request.COMMIT_OFFSETS, Request.HEARTBEAT):
        for what in ("request", "answer"):
            yield f"{what} lost: {kind.name}", lost(kind, what)
    yield "input delivered twice by rewinding", rewound
    yield "transactions aborted in the input", aborted
    yield "poison messages of every kind", poison
    yield ADDED, partition_added
    yield DAMAGED, snapshot_damaged
    yield FULL, disk_full
    yield f"kill -9 of {ARCHIVER}", archiver_killed
    yield f"SIGSTOP of {ARCHIVER} past its session", archiver_frozen
    yield f"kill -9 of {SERVER}", server_killed

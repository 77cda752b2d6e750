"""Groups: one message for a burst, then one each interval; memory that does not grow with the burst."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.operators.rules.outlets.grouping import GROUPS, LISTED, AlertGroups

from .alerts import ALERT, alert


def test_a_group_waits_once_and_then_speaks_each_interval() -> None:
    groups = AlertGroups(("rule",), 30.0, 300.0)
    said = []
    for at, key in ((0, "a"), (29, "b"), (31, "c"), (100, "d"), (700, "e"), (731, None)):
        said += [(at, [one.key[0] for one in ready.alerts]) for ready in groups.due(float(at))]
        if key is not None:
            groups.add(alert(key), float(at))
    said += [(10_000, [one.key[0] for one in ready.alerts]) for ready in groups.due(10_000.0)]
    # Due at 30; then 300 s after that was sent; silent for an interval, it waits as a new one does.
    assert said == [(31, ["a", "b"]), (700, ["c", "d"]), (10_000, ["e"])]


def test_a_group_that_was_silent_begins_again() -> None:
    groups = AlertGroups(("rule",), 30.0, 300.0)
    groups.add(alert("a"), 0.0)
    groups.due(30.0)
    assert groups.due(331.0) == [] and groups.next_due is None
    groups.add(alert("b"), 400.0)
    assert groups.next_due == 430.0


def test_groups_are_of_the_labels_that_were_named() -> None:
    groups = AlertGroups(("rule", "state"), 0.0, 1.0)
    for one in (alert("a"), alert("b"), alert("a", "cleared"), replace(ALERT, rule="cold")):
        groups.add(one, 0.0)
    labels = [dict(ready.labels) for ready in groups.due(0.0)]
    assert labels == [
        {"rule": "hot", "state": "fired"},
        {"rule": "hot", "state": "cleared"},
        {"rule": "cold", "state": "fired"},
    ]
    everything = AlertGroups((), 0.0, 1.0)
    for one in (alert("a"), replace(ALERT, rule="cold")):
        everything.add(one, 0.0)
    assert [ready.size for ready in everything.due(0.0)] == [2]


def test_a_burst_is_counted_beyond_what_is_listed() -> None:
    groups = AlertGroups(("rule",), 30.0, 300.0)
    for number in range(100_000):
        groups.add(alert(f"sensor-{number}"), 0.0)
    (ready,) = groups.due(30.0)
    assert (len(ready.alerts), ready.size) == (LISTED, 100_000) and groups.alerts == []


def test_groups_without_number_are_sent_early() -> None:
    groups = AlertGroups(("key",), 30.0, 300.0)
    for number in range(GROUPS + 5):
        groups.add(alert(f"sensor-{number}"), float(number) / 1e6)
    assert len(groups.alerts) == GROUPS + 5
    early = groups.due(1.0)
    assert [ready.alerts[0].key[0] for ready in early] == [f"sensor-{number}" for number in range(5)]


def test_what_is_not_grouped_is_due_at_once_and_whole() -> None:
    groups = AlertGroups(None, 30.0, 300.0)
    for number in range(2 * LISTED + 1):
        groups.add(alert(f"sensor-{number}"), 0.0)
    ready = groups.due(0.0)
    assert [len(one.alerts) for one in ready] == [LISTED, LISTED, 1] and groups.next_due is None
    assert [one.key[0] for part in ready for one in part.alerts] == [
        f"sensor-{n}" for n in range(2 * LISTED + 1)
    ]

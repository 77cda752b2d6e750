"""What an outlet's thread promises: nothing holds the run up, and each alert is counted once."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

import pytest

from streamgauge import StreamTester, rules
from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets import outlet_queue
from streamgauge.operators.rules.outlets.grouping import LISTED, Notification
from streamgauge.operators.rules.outlets.outlet import NotifyingOutlet
from streamgauge.operators.sinks.sink import ClosedWindow, Origin
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.watching.outlet_counts import counts_by_title
from streamgauge.rules import Alerting, AlertSilence, Threshold

from ....waiting import until
from ..plain import NOON, WINDOWS, row
from .alerts import ALERT, alert

LATER = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Outlet(NotifyingOutlet):
    """Keeps what it is sent, unless an error is due."""

    sent: list[Notification] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    waits: threading.Event = field(default_factory=threading.Event)
    kind: ClassVar[str] = "kept"

    def __post_init__(self) -> None:
        self.gate.set()
        super().__post_init__()

    @property
    def place(self) -> str:
        return "here"

    def send(self, notification: Notification) -> None:
        self.waits.set()
        assert self.gate.wait(300)
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append(notification)

    @property
    def keys(self) -> list[list[str]]:
        return [[one.key[0] for one in notification.alerts] for notification in self.sent]


AWAY = OutletError("it is away", may_pass=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_queue, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(outlet_queue, "_SILENCE_SECONDS", 0.02)


def complete(outlet: NotifyingOutlet, pending: int = 0) -> dict[str, int]:
    until(lambda: outlet.account.pending == pending)
    counts = outlet.account.to_dict()
    del counts["pending"], counts["given"]
    return {name: count for name, count in counts.items() if count}


def test_a_burst_is_one_message() -> None:
    outlet = Outlet(group_wait="1h")
    for number in range(500):
        outlet.write(alert(f"sensor-{number}"))
    assert outlet.sent == [] and outlet.account.pending == 500
    outlet.close(60)
    assert [(len(one.alerts), one.size) for one in outlet.sent] == [(LISTED, 500)]
    assert complete(outlet) == {"sent": 500}


def test_an_outlet_that_is_away_is_tried_again_in_order() -> None:
    outlet = Outlet(group_by=None, errors=[AWAY] * 4)
    for key in ("a", "b", "c"):
        outlet.write(alert(key))
    assert complete(outlet) == {"sent": 3}
    assert [key for keys in outlet.keys for key in keys] == ["a", "b", "c"]


def test_what_is_refused_or_fails_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    outlet = Outlet(group_by=None, errors=[OutletError("not like this"), ZeroDivisionError("a bug")])
    for key in ("a", "b", "c"):
        outlet.write(alert(key))
        until(lambda: not outlet.account.pending)
    assert outlet.keys == [["c"]] and complete(outlet) == {"sent": 1, "failed": 2}
    assert (
        "not like this" in caplog.text and "ZeroDivisionError" in caplog.text and alert("a").id in caplog.text
    )


def test_patience_ends(caplog: pytest.LogCaptureFixture) -> None:
    outlet = Outlet(group_by=None, errors=[AWAY] * 1_000, patience="200ms")
    outlet.write(ALERT)
    assert complete(outlet) == {"failed": 1}
    assert "is unreachable: it is away; retrying" in caplog.text and "did not accept 1 alert" in caplog.text


def test_memory_is_bounded_while_an_outlet_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_queue, "QUEUED", 3)
    outlet = Outlet(group_by=None)
    outlet.gate.clear()
    outlet.write(alert("first"))
    until(outlet.waits.is_set)
    for number in range(LISTED * 10):
        outlet.write(alert(f"sensor-{number}"))
    outlet.gate.set()
    counts = complete(outlet)
    assert counts["failed"] >= 6 * LISTED and counts["sent"] + counts["failed"] == 1 + 10 * LISTED
    assert outlet.keys[0] == ["first"] and len(outlet.sent) <= 5
    assert outlet.keys[-1][-1] == f"sensor-{LISTED * 10 - 1}"


def test_an_outlet_that_hangs_stops_neither_the_run_nor_another() -> None:
    hanging, other = Outlet(group_by=None), Outlet(group_by=None, name="other")
    hanging.gate.clear()
    alerting = Alerting([Threshold("hot", value="value", above=30)], to=[hanging, other])
    tester = StreamTester(WINDOWS, sinks=[alerting], start=NOON)
    tester.feed([row(minute, "a", 31.0 if minute % 2 else 20.0) for minute in range(10)])
    tester.finish()
    assert complete(other)["sent"] >= 9
    assert hanging.account.pending == other.account.given
    hanging.gate.set()
    until(lambda: not hanging.account.pending)


def test_only_what_matches_is_sent() -> None:
    outlet = Outlet(group_by=None, match=['key=~"hall.*"', 'state="fired"'])
    for one in (alert("hall"), alert("attic"), alert("hall-2", "cleared")):
        outlet.write(one)
    assert complete(outlet) == {"sent": 1, "unmatched": 2} and outlet.keys == [["hall"]]


def test_what_is_silenced_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    outlet = Outlet(group_by=None, silences=[AlertSilence(["key=hall"], LATER)])
    for one in (alert("hall"), alert("attic"), alert("hall", "cleared"), alert("hall", "cleared", 3)):
        outlet.write(one)
    assert complete(outlet) == {"sent": 1, "silenced": 3} and outlet.keys == [["attic"]]
    assert caplog.text.count("suppresses alerts; they are counted") == 1


def test_an_event_that_outlasts_its_silence_is_sent() -> None:
    silences = [AlertSilence(["rule=hot"], LATER)]
    outlet = Outlet(group_by=None, silences=lambda: silences)
    for one in (alert("hall"), alert("attic"), alert("attic", "cleared", 1), alert("hall", minute=2)):
        outlet.write(one)
    assert complete(outlet, pending=1) == {"silenced": 3} and outlet.sent == []
    silences.clear()
    assert complete(outlet) == {"silenced": 3, "sent": 1}
    assert outlet.sent[0].alerts[0] == alert("hall", minute=2)


def test_events_under_silences_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_queue, "HELD", 10)
    outlet = Outlet(silences=[AlertSilence(["rule=hot"], LATER)])
    for number in range(25):
        outlet.write(alert(f"sensor-{number}"))
    assert complete(outlet, pending=10) == {"silenced": 15}
    outlet.close(60)
    assert complete(outlet) == {"silenced": 25}


def test_what_is_left_at_the_end_is_given_up_with_its_ids(caplog: pytest.LogCaptureFixture) -> None:
    outlet = Outlet(group_wait="1h", errors=[AWAY] * 100_000)
    outlet.write(ALERT)
    outlet.close(0.2)
    assert complete(outlet) == {"failed": 1} and f"({ALERT.id}): the run has ended" in caplog.text


def test_an_outlet_goes_on_after_it_was_closed() -> None:
    outlet = Outlet(group_by=None)
    for key in ("a", "b"):
        outlet.write(alert(key))
        outlet.close(60)
    assert outlet.keys == [["a"], ["b"]]


def test_what_waits_comes_with_the_next_run_and_what_was_sent_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tester = StreamTester(WINDOWS, start=NOON)
    tester.feed([row(0, "a", 31.0), row(0, "b", 32.0)])
    tester.finish()
    origin = Origin.of(WINDOWS, "group", named=True)
    window = ClosedWindow(WindowGroups.of_table(tester.tables().to_arrow()), 0, True, origin)

    def folding(*to: Outlet):
        return Alerting([Threshold("hot", value="value", above=30)], to=to).for_partition(origin, 0)

    waiting = Outlet(group_wait="1h", silences=[AlertSilence(["key=b"], LATER)])
    done = Outlet(group_by=None, name="done")
    run = folding(waiting, done)
    run.update(window)
    assert complete(done) == {"sent": 2} and waiting.account.pending == 2
    memory = run.state()
    second, done = Outlet(group_by=None), Outlet(group_by=None, name="done")
    run = folding(second, done)
    run.restore(memory)
    assert complete(second) == {"sent": 2} and done.account.given == 0
    assert sorted(key for keys in second.keys for key in keys) == ["a", "b"]
    assert "pending" in json.loads(memory) and "pending" not in json.loads(run.state())
    # The memory is older than what was done: as on Spark, where each micro-batch begins with one.
    run = folding(second, done)
    run.restore(memory)
    assert second.account.given == 2 and "pending" not in json.loads(run.state())
    folding(done).restore(memory)
    assert done.account.given == 0 and "which is no longer an outlet" in caplog.text


def test_a_flush_sends_what_waits_and_leaves_what_is_held_back() -> None:
    outlet = Outlet(group_wait="1h", silences=[AlertSilence(["key=b"], LATER)])
    outlet.write(alert("a"))
    outlet.write(alert("b"))
    outlet.flush(60)
    assert complete(outlet, pending=1) == {"sent": 1}
    outlet.write(alert("c"))
    outlet.close(60)
    assert complete(outlet) == {"sent": 2, "silenced": 1}


def test_a_program_that_ends_sends_what_waits() -> None:
    code = """
from dataclasses import dataclass
from typing import ClassVar
from streamgauge.operators.rules.outlets.outlet import NotifyingOutlet
from streamgauge.rules import Alert

@dataclass(frozen=True)
class Printed(NotifyingOutlet):
    kind: ClassVar[str] = "printed"
    place = "here"

    def send(self, notification):
        print("sent", notification.size, flush=True)

Printed(group_wait="1h").write(Alert("hot", "t", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "sent 1\n", done.stderr


@pytest.mark.parametrize(
    "outlet",
    [
        partial(rules.AlertsToApprise, "nothing://x"),
        partial(rules.AlertsToMqtt, "http://x"),
        partial(rules.AlertsToNtfy, "http://x/alerts", priority=9),
        partial(rules.AlertsToAlertmanager, "http://x", labels={"1": "x"}),
    ],
)
def test_metrics_know_nothing_of_an_outlet_that_was_refused(outlet: Any) -> None:
    gc.collect()  # outlets of other tests
    before = counts_by_title()
    # The traceback holds what was being made.
    with pytest.raises(ValueError) as refused:
        outlet()
    assert counts_by_title() == before and refused.tb is not None

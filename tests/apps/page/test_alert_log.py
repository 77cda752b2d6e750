"""The alerts that a page shows: each once, bounded, with what became of each event."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.apps.page.alert_log import AlertLog

from .shown import alert


def test_an_event_is_cleared_by_what_follows_and_reported_once() -> None:
    log = AlertLog("yard")
    log.add([alert("errors", "fired", 5), alert("errors", "fired", 5), alert("errors", "cleared", 9)])
    log.add([alert("errors", "fired", 20)])
    reported = log.describe()
    assert [(e["at"][11:16], e["cleared"] and e["cleared"][11:16]) for e in reported["events"]] == [
        ("00:20", None),
        ("00:05", "00:09"),
    ]
    assert (
        reported["by_rule"] == {"errors": 2}
        and reported["more"] == 0
        and log.number == reported["number"] == 4
    )


def test_an_event_that_was_withdrawn_never_was() -> None:
    log = AlertLog("yard")
    log.add([alert("errors", "fired", 5), alert("errors", "withdrawn", 5)])
    assert log.describe()["events"] == []


def test_alerts_of_another_app_on_the_same_topic_are_left_out() -> None:
    log = AlertLog("yard")
    log.add([alert("errors", "fired", 5, app="iot")])
    assert log.describe()["events"] == [] and log.number == 0


def test_events_that_last_come_first_and_are_counted_whatever_came_after() -> None:
    """33 that burn behind 282 that ended immediately, and behind more than the log keeps of those."""
    for after, most in ((282, 5_000), (282, 100), (5_000, 50)):
        log = AlertLog("yard", {"noted"}, most)
        log.add(replace(alert("burning", "fired", minute), key=(minute,)) for minute in range(33))
        log.add([replace(alert("burning", "fired", 40), key=("out",)), alert("over", "fired", 41)])
        log.add([replace(alert("burning", "cleared", 44), key=("out",)), alert("over", "withdrawn", 41)])
        log.add(replace(alert("noted", "fired", 50 + number), key=(number,)) for number in range(after))
        reported = log.describe(last=40)
        assert reported["active"] == 33, (after, most)
        assert [event["key"] for event in reported["events"][:33]] == list(range(32, -1, -1))
        assert {event["rule"] for event in reported["events"][33:]} == {"noted"}
        assert reported["by_rule"]["burning"] >= 33
        # What is kept beyond them is bounded.
        assert len(log.alerts) <= 33 + most + most // 10 and reported["dropped"] == log.number - len(
            log.alerts
        )


def test_the_oldest_are_dropped_and_that_is_said() -> None:
    log = AlertLog("yard", most=3)
    log.add(alert("errors", "fired", minute) for minute in range(5))
    reported = log.describe(last=2)
    assert (len(reported["events"]), reported["more"], reported["dropped"]) == (2, 2, 1)


def test_watchers_learn_of_alerts_and_of_what_stands_in_the_way() -> None:
    log, heard = AlertLog("yard"), []
    end = log.watch(lambda: heard.append(log.stale))
    log.write(alert("errors", "fired", 5))
    log.is_stale("no broker answers")
    log.is_stale("no broker answers")
    log.is_stale(None)
    end()
    log.write(alert("errors", "cleared", 6))
    assert heard == [None, "no broker answers", None]


def test_events_are_selected_by_rule_text_and_id() -> None:
    log = AlertLog("yard")
    log.add(
        [alert("errors", "fired", 5), replace(alert("slow", "fired", 6), key=("Oak", 5), why="p99 is high")]
    )
    assert [e["rule"] for e in log.describe(rule="slow")["events"]] == ["slow"]
    for text, rules in (("oak", ["slow"]), ("P99", ["slow"]), ("elm", ["errors"]), ("birch", [])):
        described = log.describe(text=text)
        assert [e["rule"] for e in described["events"]] == rules
        assert described["by_rule"] == {"errors": 1, "slow": 1} and described["active"] == 2
    (event,) = log.describe(rule="errors")["events"]
    assert log.event(event["id"]) == event and event["active"]
    assert log.event("nothing") is None
    log.add([alert("errors", "withdrawn", 5)])
    assert log.event(event["id"]) is None

"""The alerts that a page shows: each once, bounded, with what became of each event."""

from __future__ import annotations

from streamgauge.apps.page.alert_log import AlertLog

from .shown import alert


def test_an_event_is_cleared_by_what_follows_and_told_once() -> None:
    log = AlertLog("yard")
    log.take([alert("errors", "fired", 5), alert("errors", "fired", 5), alert("errors", "cleared", 9)])
    log.take([alert("errors", "fired", 20)])
    told = log.told()
    assert [(e["at"][11:16], e["cleared"] and e["cleared"][11:16]) for e in told["events"]] == [
        ("00:20", None),
        ("00:05", "00:09"),
    ]
    assert told["by_rule"] == {"errors": 2} and told["more"] == 0 and log.number == told["number"] == 4


def test_an_event_that_was_withdrawn_never_was() -> None:
    log = AlertLog("yard")
    log.take([alert("errors", "fired", 5), alert("errors", "withdrawn", 5)])
    assert log.told()["events"] == []


def test_alerts_of_another_app_on_the_same_topic_are_left_out() -> None:
    log = AlertLog("yard")
    log.take([alert("errors", "fired", 5, app="iot")])
    assert log.told()["events"] == [] and log.number == 0


def test_the_oldest_are_dropped_and_that_is_said() -> None:
    log = AlertLog("yard", most=3)
    log.take(alert("errors", "fired", minute) for minute in range(5))
    told = log.told(last=2)
    assert (len(told["events"]), told["more"], told["dropped"]) == (2, 1, 2)


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

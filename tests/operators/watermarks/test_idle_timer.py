"""How long a partition has been silent."""

from __future__ import annotations

from streamgauge.operators.watermarks.idle_timer import IdleTimer


def test_silence_counts_from_the_last_event_time_to_the_last_look_at_an_end() -> None:
    silence = IdleTimer(100.0)
    assert silence.update(0, 0, 103.0) == 3
    silence.heard(104.0)
    assert silence.update(5, 5, 104.5) == 0.5
    assert silence.update(5, 5, 110.0) == 6


def test_unread_messages_are_no_silence() -> None:
    silence = IdleTimer(0.0)
    assert silence.update(5, 5, 10.0) == 10
    # An open transaction: nobody gets on for as long as it lasts.
    assert [silence.update(5, 9, now) for now in (11.0, 20.0, 90.0)] == [0, 0, 0]
    assert silence.update(9, 9, 91.0) == 91


def test_a_backlog_is_no_silence_however_fast_it_is_read() -> None:
    silence = IdleTimer(0.0)
    assert [silence.update(100 * second, 1_000_000, float(second)) for second in range(50)] == [0] * 50


def test_messages_without_event_time_are_silence_though_they_never_cease() -> None:
    silence = IdleTimer(0.0)
    result = [silence.update(100 * second, 100 * second + 30, float(second)) for second in range(1, 10)]
    assert result == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_what_wakes_it_is_no_silence_from_the_first_look() -> None:
    silence = IdleTimer(0.0)
    assert silence.update(7, 7, 5.0) == 5
    assert silence.update(7, 8, 6.0) == 0

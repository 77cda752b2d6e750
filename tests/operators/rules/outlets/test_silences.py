"""Matchers as Alertmanager writes them, and silences of a file that changes under a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamgauge.operators.rules.outlets.matchers import Matcher, labels_of
from streamgauge.operators.rules.outlets.silences import SilenceFile
from streamgauge.operators.rules.outlets.toml_outlets import read_silences
from streamgauge.rules import AlertSilence

from .alerts import alert

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('key="hall"', ["hall"]),
        ("key=hall", ["hall"]),
        ('key != "hall"', ["hall-2", 'a"b', ""]),
        ('key=~"hall(-.)?"', ["hall", "hall-2"]),
        ('key=~"hall"', ["hall"]),
        ('key!~"hall.*"', ['a"b', ""]),
        (r'key="a\"b"', ['a"b']),
        ('key=""', []),  # an empty key is shown as ''
        ('rule="hot"', ["hall", "hall-2", 'a"b', ""]),
    ],
)
def test_matchers(text: str, keys: list[str]) -> None:
    matcher = Matcher.parse(text)
    all_keys = ["hall", "hall-2", 'a"b', ""]
    assert [key for key in all_keys if matcher.matches(labels_of(alert(key)))] == keys
    assert Matcher.parse(str(matcher)) == matcher


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hot", "a matcher must be like"),
        ('host="a"', "the label must be one of app, rule, kind, key, state, got 'host'"),
        ('key=~"("', "not a pattern"),
        ('key="a" or key="b"', "a matcher must be like"),
    ],
)
def test_what_is_no_matcher_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlertSilence([text], until=NOW)


def test_a_silence_has_its_time_and_all_its_matchers() -> None:
    silence = AlertSilence(['rule="hot"', 'key="hall"'], NOW + timedelta(hours=1), since=NOW)
    labels = labels_of(alert("hall"))
    assert [silence.holds(labels, NOW + timedelta(minutes=m)) for m in (-1, 0, 59, 60)] == [
        False,
        True,
        True,
        False,
    ]
    assert not silence.holds(labels_of(alert("attic")), NOW)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"match": [], "until": NOW}, "needs a matcher"),
        ({"match": 'rule="hot"', "until": NOW}, "must be a list of matchers"),
        ({"match": ['rule="hot"'], "until": datetime(2026, 6, 1)}, "until must be a time with its zone"),
        ({"match": ['rule="hot"'], "until": NOW, "since": "noon"}, "since must be a time with its zone"),
    ],
)
def test_silences_that_can_not_be_are_named(given, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlertSilence(**given)


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "outlets.toml"
    path.write_text("")
    silences = SilenceFile(path, read_silences)
    assert silences() == ()
    path.write_text('[[silence]]\nmatch = ["key=hall"]\nuntil = 2026-06-01T18:00:00Z\n')
    assert [one.holds(labels_of(alert("hall")), NOW) for one in silences()] == [True]
    path.write_text("[[silence")
    assert len(silences()) == len(silences()) == 1
    path.unlink()
    assert len(silences()) == 1
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"the silences of {path} can't be read and stay unchanged"
    ] * 2

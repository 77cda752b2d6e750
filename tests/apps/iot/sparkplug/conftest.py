"""Births that are known without a broker."""

from __future__ import annotations

import pytest

from streamgauge.apps.iot.sparkplug import decoder
from streamgauge.apps.iot.sparkplug.birth_log import BirthLog
from streamgauge.operators.formats.messages import Messages

from .made import Sent


def messages_of(sent: list[Sent], partition: int = 0) -> Messages:
    values, keys = [one.value for one in sent], [one.key for one in sent]
    return Messages.of(values, keys, partition=partition, timestamps=[one.arrived for one in sent])


class Log(BirthLog):
    """A log whose topic holds the given messages."""

    def __init__(self) -> None:
        super().__init__("births", {})

    def holds(self, sent: list[Sent]) -> None:
        self.take(messages_of(sent))

    def _catch_up(self) -> None:
        pass


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    result = Log()
    monkeypatch.setattr(decoder, "birth_log", lambda topic, settings: result)
    return result

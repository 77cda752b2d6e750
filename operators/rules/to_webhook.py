"""Alerts to a web address, which may be away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_exponential

from .alert import Alert

log = logging.getLogger("streamgauge.rules")

_TIMEOUT_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


@dataclass(frozen=True)
class AlertsToWebhook:
    """POST each alert as JSON to an address, in their order.

    An answer from 200 to 299 takes it. Where the address is away or answers 429 or 5xx, the alert is sent
    again, for at most `patience` seconds; any other answer refuses it for good. While an address is away,
    later alerts get one attempt each, so that the stream is held up for no longer. What is given up is
    counted (`failed`), logged, and not sent again. The header ``Idempotency-Key`` holds the alert's id: after
    a crash the last alerts may be sent again.

    Raises `ValueError` for an address that isn't one of the web.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToWebhook("ftp://example.org")
    Traceback (most recent call last):
    ValueError: AlertsToWebhook: the address must begin with http:// or https://, got 'ftp://example.org'
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: float = 30.0
    _counts: dict[str, int] = field(
        default_factory=lambda: {"failed": 0, "sent": 0, "away": 0}, init=False, repr=False, compare=False
    )
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ValueError(
                f"AlertsToWebhook: the address must begin with http:// or https://, got {self.url!r}"
            )
        if isinstance(self.patience, bool) or not isinstance(self.patience, int | float) or self.patience < 0:
            raise ValueError(f"AlertsToWebhook: patience must be a number of seconds, got {self.patience!r}")

    @property
    def failed(self) -> int:
        """How many alerts were given up."""
        return self._counts["failed"]

    @property
    def sent(self) -> int:
        """How many alerts were accepted."""
        return self._counts["sent"]

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        self.send(alert, alert.to_dict())

    def send(self, alert: Alert, body: Any) -> None:
        """POST a body about an alert, or give it up after a time and count that."""
        with self._turn:
            patience = 0.0 if self._counts["away"] else self.patience
            tries = Retrying(
                retry=retry_if_exception(_may_pass),
                wait=wait_exponential(_FIRST_PAUSE, _LONGEST_PAUSE, min=_FIRST_PAUSE),
                stop=stop_after_delay(patience),
            )
            try:
                tries(self._post, alert, body)
            except (RetryError, httpx.HTTPError) as error:
                cause = error.last_attempt.exception() if isinstance(error, RetryError) else error
                self._counts["failed"] += 1
                self._counts["away"] = int(isinstance(error, RetryError))
                log.warning(
                    "%s did not take the alert %s of %r: %s", _plain(self.url), alert.id, alert.rule, cause
                )
                return
            self._counts["sent"] += 1
            self._counts["away"] = 0

    def _post(self, alert: Alert, body: Any) -> None:
        headers = {**self.headers, "Idempotency-Key": alert.id}
        answer = httpx.post(self.url, json=body, headers=headers, timeout=_TIMEOUT_SECONDS)
        if not answer.is_success:
            problem = f"it answered {answer.status_code}"
            raise httpx.HTTPStatusError(problem, request=answer.request, response=answer)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == 429 or error.response.status_code >= 500
    return isinstance(error, httpx.TransportError)


def _plain(url: str) -> str:
    """An address without what may be secret in it: the user, and the query."""
    parts = httpx.URL(url)
    return str(parts.copy_with(username=None, password=None, query=None))

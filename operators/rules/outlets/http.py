"""Outlets that send by HTTP."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....sketches.core.lazy import httpx
from .errors import OutletError
from .outlet import NotifyingOutlet

_TIMEOUT_SECONDS = 10.0
_ANSWER = 200
"""The number of characters of a server's refusal that are shown."""


@dataclass(frozen=True)
class HttpOutlet(NotifyingOutlet, ABC):
    """An outlet at a web address. The whole address may be a secret, so it is never shown."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    token: str = field(default="", repr=False, kw_only=True)
    user: str = field(default="", kw_only=True)
    password: str = field(default="", repr=False, kw_only=True)

    def _check(self) -> None:
        # Errors don't include the address: a webhook's address is its password.
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ValueError(f"{self.kind}: url must begin with http:// or https://")
        try:
            host = httpx.URL(self.url).host
        except httpx.InvalidURL:
            host = ""
        if not host:
            raise ValueError(f"{self.kind}: url is not an address of the web")
        if self.token and self.user:
            raise ValueError(f"{self.kind}: give a token, or a user and a password, not both")
        if not self.token.isascii() or any(letter.isspace() for letter in self.token):
            raise ValueError(f"{self.kind}: token must be of plain letters, digits and signs")
        super()._check()

    @property
    def place(self) -> str:
        """See `NotifyingOutlet`."""
        return httpx.URL(self.url).host

    def post(self, url: str, body: Any, headers: Mapping[str, str] = {}) -> None:
        """POST a body as JSON. Raises `OutletError` without an answer, and for any answer but success."""
        sent = {**self.headers, **headers}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        auth = (self.user, self.password) if self.user else None
        try:
            answer = httpx.post(url, json=body, headers=sent, auth=auth, timeout=_TIMEOUT_SECONDS)
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol):
            raise OutletError("its address, headers or token can't be sent") from None
        except httpx.TransportError as error:
            raise OutletError(self._clean(str(error) or type(error).__name__), may_pass=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise OutletError(self._clean(str(error))) from None
        if answer.is_success:
            return
        text = " ".join(answer.text.split())[:_ANSWER]
        problem = self._clean(f"it answered {answer.status_code}" + (f": {text}" if text else ""))
        if answer.status_code == 401:
            problem += "; check its user and password, or its token"
        may_pass = answer.status_code in (408, 429) or answer.status_code >= 500
        raise OutletError(problem, may_pass, _seconds(answer.headers.get("Retry-After", "")))

    def _clean(self, text: str) -> str:
        """A text with this outlet's secrets removed."""
        secrets = [self.url, httpx.URL(self.url).path.strip("/"), self.token, self.password]
        for secret in (*secrets, *self.headers.values()):
            if len(secret) >= 4:
                text = text.replace(secret, "…")
        return text


def _seconds(text: str) -> float:
    """The number of seconds that a server asks to wait; dates are ignored."""
    return min(float(text), 3600.0) if text.strip().isdecimal() else 0.0

"""Alerts by e-mail."""

from __future__ import annotations

import hashlib
import logging
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from typing import ClassVar, Literal

from .errors import OutletError
from .grouping import Notification
from .outlet import NotifyingOutlet
from .text import subject

log = logging.getLogger("streamgauge.rules")

_TIMEOUT_SECONDS = 20.0
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True)
class AlertsToEmail(NotifyingOutlet):
    """Send alerts by e-mail, through the SMTP server `host`.

    sender, to
        The sender's address, and the recipients' addresses.
    security
        ``"starttls"`` (the default), ``"tls"`` from the first byte, or ``"none"``, which is for servers on
        this machine or in your own network, and sends no password.
    port
        By default 587, 465 or 25, depending on `security`.
    user, password
        If the server requires a login.
    ca_file
        Certificates in PEM to trust in addition to the system's.

    A message that the server has accepted may still be rejected by later servers. Text from messages is in
    the body and, with every control character escaped, in the subject. docs/alerts.md describes the options
    of all outlets to people. Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> mail = sg.rules.AlertsToEmail("mx.example.org", sender="gauge@example.org", to=["ops@example.org"])
    >>> mail.title
    'email mx.example.org'
    """

    host: str
    sender: str = field(kw_only=True)
    to: Sequence[str] = field(kw_only=True)
    port: int = field(default=0, kw_only=True)
    security: Literal["starttls", "tls", "none"] = field(default="starttls", kw_only=True)
    user: str = field(default="", kw_only=True)
    password: str = field(default="", repr=False, kw_only=True)
    ca_file: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "email"

    def _check(self) -> None:
        if not isinstance(self.host, str) or not self.host:
            raise ValueError(f"email: host must be a server's name, got {self.host!r}")
        if self.security not in _PORTS:
            raise ValueError(f"email: security must be one of {', '.join(_PORTS)}, got {self.security!r}")
        if self.security == "none" and self.user:
            raise ValueError('email: a password is not sent without TLS; write security = "starttls"')
        if isinstance(self.to, str) or not self.to:
            raise ValueError(
                f'email: to must be a list of addresses, as in ["ops@example.org"], got {self.to!r}'
            )
        for address in (self.sender, *self.to):
            _address(address)
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port < 65_536:
            raise ValueError(f"email: port must be a number below 65536, got {self.port!r}")
        super()._check()

    @property
    def place(self) -> str:
        """See `NotifyingOutlet`."""
        return self.host

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`. Raises `OutletError` if the server accepts it for nobody."""
        message = self.message(notification)
        try:
            with self._connected() as server:
                refused = server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            code, text = next(iter(error.recipients.values()))
            raise OutletError(f"no address was accepted: {_answer(code, text)}", code < 500) from None
        except smtplib.SMTPResponseException as error:
            raise OutletError(_answer(error.smtp_code, error.smtp_error), error.smtp_code < 500) from None
        except smtplib.SMTPNotSupportedError as error:
            raise OutletError(f"the server lacks a feature that is needed: {error}") from None
        except ssl.SSLCertVerificationError as error:
            raise OutletError(f"its certificate is not trusted: {error.verify_message}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise OutletError(str(error) or type(error).__name__, may_pass=True) from None
        if refused:
            log.warning("%s: the server refused %s; others got it", self.title, ", ".join(sorted(refused)))

    def message(self, notification: Notification) -> EmailMessage:
        """The message to send; the same alerts have the same Message-ID."""
        message = EmailMessage()
        message["Subject"] = subject(notification)
        message["From"] = _address(self.sender)
        message["To"] = [_address(one) for one in self.to]
        message["Date"] = formatdate()
        ids = hashlib.sha256(",".join(alert.id for alert in notification.alerts).encode()).hexdigest()[:32]
        message["Message-ID"] = f"<{ids}@{_address(self.sender).domain}>"
        message["Auto-Submitted"] = "auto-generated"
        text = "\n\n".join(self.lines(notification, self.link)) + "\n"
        message.set_content(text, charset="utf-8")
        return message

    def _connected(self) -> smtplib.SMTP:
        port = self.port or _PORTS[self.security]
        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        if self.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, port, timeout=_TIMEOUT_SECONDS, context=context
            )
        else:
            server = smtplib.SMTP(self.host, port, timeout=_TIMEOUT_SECONDS)
        try:
            if self.security == "starttls":
                server.starttls(context=context)
            if self.user:
                server.login(self.user, self.password)
        except BaseException:
            server.close()
            raise
        return server


def _address(text: str) -> Address:
    """An address, optionally with a name before it. Raises `ValueError` for an invalid one."""
    if isinstance(text, str) and not any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        name, spec = parseaddr(text)
        user, sign, domain = spec.rpartition("@")
        if sign and user and domain and " " not in spec:
            return Address(name, user, domain)
    raise ValueError(f"email: {text!r} is not an address such as ops@example.org")


def _answer(code: int, text: bytes | str) -> str:
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return f"it answered {code}: {' '.join(said.split())[:200]}"

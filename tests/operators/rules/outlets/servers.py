"""Servers on loopback that speak what outlets speak: the web, and SMTP with or without TLS."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any


class WebServer:
    """Keeps what is posted, and answers as it is set to, then with 200."""

    def __init__(self, answers: list[int] | None = None) -> None:
        self.answers, self.requests = list(answers or ()), list[Request]()
        self.always: int | None = None
        self.hold = threading.Event()
        self.hold.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(Request(self.path, dict(self.headers), body))
                outer.hold.wait(120)
                answer = outer.always or (outer.answers.pop(0) if outer.answers else 200)
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self.http.shutdown()
        self.http.server_close()


@dataclass
class Mail:
    sender: str
    to: list[str]
    secure: bool
    user: str
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        parsed = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed


@dataclass
class SmtpServer:
    """SMTP on loopback (RFC 5321, 3207, 4954): EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA.

    `security` as for `AlertsToEmail`; `refused` are addresses that it has not, `answers` what it says to
    the next messages in place of 250.
    """

    security: str = "none"
    context: ssl.SSLContext | None = None
    logins: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)
    mails: list[Mail] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError):
            if self.security == "tls":
                assert self.context is not None
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection:
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        file, secure = connection.makefile("rb"), self.security == "tls"
        user, sender, to = "", "", list[str]()

        def say(text: str) -> None:
            connection.sendall(text.encode() + b"\r\n")

        say("220 mx.test ESMTP")
        while line := file.readline():
            word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            word = word.upper()
            if word == "EHLO":
                extensions = ["mx.test", "8BITMIME"]
                extensions += ["AUTH PLAIN"] if self.logins else []
                extensions += ["STARTTLS"] if self.security == "starttls" and not secure else []
                for number, one in enumerate(extensions, 1):
                    say(f"250{' ' if number == len(extensions) else '-'}{one}")
            elif word == "STARTTLS" and self.context is not None:
                say("220 go on")
                connection = self.context.wrap_socket(connection, server_side=True)
                file, secure = connection.makefile("rb"), True
            elif word == "AUTH":
                _, name, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                user = name if self.logins.get(name) == password else ""
                say("235 welcome" if user else "535 5.7.8 bad credentials")
            elif word == "MAIL":
                sender = rest.partition("<")[2].partition(">")[0]
                say("250 ok" if user or not self.logins else "530 5.7.0 authentication required")
            elif word == "RCPT":
                address = rest.partition("<")[2].partition(">")[0]
                if address in self.refused:
                    say(f"{self.refused[address]} no such mailbox")
                else:
                    to.append(address)
                    say("250 ok")
            elif word == "DATA":
                say("354 end with a dot")
                raw = b""
                while (line := file.readline()) not in (b".\r\n", b""):
                    raw += line.removeprefix(b".") if line.startswith(b"..") else line
                answer = self.answers.pop(0) if self.answers else 250
                if answer == 250:
                    self.mails.append(Mail(sender, to, secure, user, raw))
                sender, to = "", []
                say(f"{answer} said")
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok" if word in ("RSET", "NOOP", "HELO") else "502 not known")


def certificate(folder: Path) -> tuple[str, ssl.SSLContext]:
    """A certificate of this machine: its file, and what a server shows it with."""
    key, pem = folder / "key.pem", folder / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=mx.test",
    ]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(pem)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    return str(pem), context

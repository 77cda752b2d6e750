"""A small schema registry on a free port of this machine, for the tests of formats.

It answers as Confluent's does, in what their client requests, and can be made to refuse, fail and go away.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Reference = Mapping[str, Any]


@dataclass
class SmallRegistry:
    """What it holds and how it answers; `fails` is a status that it answers everything with.

    With `certificate`, a folder of cert.pem and key.pem, it speaks TLS.
    """

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    login: str | None = None
    fails: int | None = None
    certificate: Path | None = None
    requests: list[str] = field(default_factory=list)
    url: str = ""
    port: int = 0

    def add(
        self,
        subject: str,
        schema: Any,
        kind: str = "AVRO",
        references: Sequence[Reference] = (),
        serialized: bytes | None = None,
        number: int | None = None,
    ) -> int:
        """Register a schema; gives its id."""
        result = number or 100 + len(self.schemas)
        text = schema if isinstance(schema, str) else json.dumps(schema)
        reported: dict[str, Any] = {"schema": text, "schemaType": kind, "references": list(references)}
        self.schemas[result] = {**reported, "serialized": serialized}
        self.subjects.setdefault(subject, []).append(result)
        return result

    def answer(self, path: str, login: str | None) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        self.requests.append(path)
        if self.fails is not None:
            return self.fails, {"error_code": self.fails, "message": "not now"}
        if self.login is not None and login != self.login:
            return 401, {"error_code": 401, "message": "who are you?"}
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        form = parse_qs(urlsplit(path).query).get("format", [""])[0]
        if parts[:2] == ["schemas", "ids"]:
            result = self.schemas.get(int(parts[2]))
            return (200, _described(result, form)) if result else (404, _unknown(40403, "Schema not found"))
        if parts[0] == "subjects" and len(parts) == 4:
            ids = self.subjects.get(parts[1])
            if ids is None:
                return 404, _unknown(40401, "Subject not found")
            at = len(ids) if parts[3] in ("latest", "-1") else int(parts[3])
            if not 1 <= at <= len(ids):
                return 404, _unknown(40402, "Version not found")
            number = ids[at - 1]
            return 200, {
                **_described(self.schemas[number], form),
                "subject": parts[1],
                "version": at,
                "id": number,
            }
        return 404, _unknown(404, "HTTP 404 Not Found")

    @contextmanager
    def served(self) -> Iterator[SmallRegistry]:
        """Serve it, at the port it had before if it had one."""
        registry = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                words = self.headers.get("Authorization", "").split()
                login = base64.b64decode(words[1]).decode() if words[:1] == ["Basic"] else None
                status, answers = registry.answer(self.path, login)
                body = json.dumps(answers).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Answers)
        server.daemon_threads = True
        self.port = server.server_address[1]
        self.url = f"http{'' if self.certificate is None else 's'}://127.0.0.1:{self.port}"
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate / "cert.pem", self.certificate / "key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _described(result: Mapping[str, Any], form: str) -> dict[str, Any]:
    reported = {name: result[name] for name in ("schema", "schemaType", "references")}
    if form == "serialized" and result["serialized"] is not None:
        reported["schema"] = base64.b64encode(result["serialized"]).decode()
    return reported


def _unknown(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


def framed(number: int, value: bytes) -> bytes:
    """A value in Confluent's wire format."""
    return b"\0" + number.to_bytes(4, "big") + value

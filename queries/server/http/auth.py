"""Access control: a token for all clients, or only this machine."""

from __future__ import annotations

import hmac
from typing import Any

from .errors import Problem

_OPEN = ("/health", "/ready", "/docs", "/openapi.json", "/")
_LONGEST_QUERY = 16_384
_HERE = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """Accepts requests with the token or, without a token, requests sent to this machine.

    Health, readiness, the documentation and paths below `open_to_all` reveal nothing about any table, and are
    public. Without a token, the host in a browser's request must be this machine's own name; otherwise
    another site's page, whose name was pointed here (DNS rebinding), could read the answers.
    """

    def __init__(self, app: Any, token: str | None, open_to_all: tuple[str, ...] = ()) -> None:
        self._app = app
        self._open = ("/docs/", *open_to_all)
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        problem = self._refusal(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await problem.response()(scope, receive, send)

    def _refusal(self, scope: Any) -> Problem | None:
        headers = dict(scope["headers"])
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return Problem(
                414,
                "The question is too long for a URL",
                f"the query string may have at most {_LONGEST_QUERY} bytes; send the question as a JSON "
                "body, by POST",
            )
        if self._token is None:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name not in _HERE:
                return Problem(
                    421,
                    "Not the address of this server",
                    f"without a token the server answers requests to {', '.join(_HERE)} only, and this one "
                    f"names {host!r}; start it with --token-file to allow others",
                )
            return None
        path = scope["path"]
        if path in _OPEN or path.startswith(self._open):
            return None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token):
            return None
        return Problem(401, "The token is missing or wrong", 'send the header "Authorization: Bearer TOKEN"')

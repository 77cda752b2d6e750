"""Responses of JSON, whatever texts they hold."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from ...response_format import json_bytes


class JSONAnswer(JSONResponse):
    """A response of JSON in which halves of characters, as JSON has them, stay such."""

    def render(self, content: Any) -> bytes:
        """See `starlette.responses.JSONResponse`."""
        return json_bytes(content)

"""JSON responses, whatever strings they contain."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from ...response_format import json_bytes


class JSONAnswer(JSONResponse):
    """A JSON response in which lone surrogates, which JSON allows, are preserved."""

    def render(self, content: Any) -> bytes:
        """See `starlette.responses.JSONResponse`."""
        return json_bytes(content)

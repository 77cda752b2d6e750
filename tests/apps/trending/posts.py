"""Posts in the project's own shape."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def line(second: float, author: str = "ann", *tags: str, kind: str = "post", id: str = "") -> bytes:
    at = (NOON + timedelta(seconds=second)).isoformat()
    return json.dumps({"id": id, "kind": kind, "author": author, "created_at": at, "tags": tags}).encode()

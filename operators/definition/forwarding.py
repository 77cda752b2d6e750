"""Forwarding rows to a topic one by one, instead of sketching them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...sketches.core.lazy import pl
from ..formats.encode import Encoder

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, eq=False)
class Forwarding:
    """A topic, and how rows become its messages, as `Stream.rows_to_kafka` defines them."""

    topic: str
    key: tuple[str, ...]
    value: Encoder

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` if rows with these columns can't be sent this way."""
        if not isinstance(self.topic, str) or not _NAME.fullmatch(self.topic) or self.topic in (".", ".."):
            raise ValueError(
                f"rows_to_kafka: {self.topic!r} is not the name of a topic, which has letters, digits, dots, "
                "dashes and underscores"
            )
        for name in self.key:
            if not isinstance(name, str):
                raise TypeError(
                    f'rows_to_kafka: key must name one or more columns, as in key="user", got {name!r}'
                )
            if name not in schema:
                raise ValueError(
                    f"rows_to_kafka: the key {name!r} is not a column; there are {', '.join(schema)}"
                )
        if isinstance(self.value, type) or not isinstance(self.value, Encoder):
            raise TypeError(
                'rows_to_kafka: value must be an encoder: as_json(), as_avro(...) or as_bytes("column"), '
                f"got {self.value!r}"
            )
        if not schema:
            raise ValueError("rows_to_kafka: the rows have no columns")
        self.value.check(pl.Schema(schema))

    def definition(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"topic": self.topic, "key": list(self.key), "value": self.value.definition()}

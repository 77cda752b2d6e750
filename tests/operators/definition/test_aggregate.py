"""An aggregate written down in a table's metadata, and read again."""

from __future__ import annotations

import json

import pytest

from streamgauge.operators.definition.aggregate import VERSION, Aggregate
from streamgauge.operators.definition.aggregates import top_k
from streamgauge.sketches.core.protocol import SketchError


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"aggregate": "median"}', b"\xff"])
def test_metadata_that_is_no_definition_is_refused(text: str | bytes) -> None:
    with pytest.raises(SketchError, match="is not the definition of an aggregate"):
        Aggregate.from_json(text)


def test_what_is_of_another_form_is_refused_by_name() -> None:
    payload = json.dumps({**json.loads(top_k("tags").to_json()), "version": VERSION + 1})
    with pytest.raises(SketchError, match=r"format version 2, by another version .*: install that"):
        Aggregate.from_json(payload)

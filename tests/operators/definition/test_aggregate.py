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


def test_tables_from_before_definitions_had_a_version_are_read() -> None:
    asked = top_k("tags", k=3)
    told = json.loads(asked.to_json())
    assert told.pop("version") == VERSION
    assert Aggregate.from_json(json.dumps(told)) == asked


def test_what_a_later_version_wrote_is_refused_by_name() -> None:
    told = json.dumps({**json.loads(top_k("tags").to_json()), "version": VERSION + 1})
    with pytest.raises(SketchError, match=r"in form 2, by a later version .*: install that version"):
        Aggregate.from_json(told)

"""Whether windows are final is said by the table that holds them."""

from __future__ import annotations

import pyarrow as pa

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.table.final import is_final, with_final
from streamgauge.operators.table.schema import from_ipc, keys_of, table_schema, to_ipc
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.table.windows import declared_windows
from streamgauge.operators.windows.hopping import regular_windows

TABLE = table_schema({"k": pa.string()}, {"n": count()}, regular_windows(60_000_000)).empty_table()


def test_it_is_said_in_the_metadata_beside_keys_and_windows() -> None:
    for final in (True, False):
        reported = from_ipc(to_ipc(with_final(TABLE, final)))
        assert is_final(reported) is final
        assert keys_of(reported.schema) == ["k"] and declared_windows(reported.schema) == regular_windows(
            60_000_000
        )
    assert is_final(with_final(with_final(TABLE, True), False)) is False


def test_a_table_that_was_merged_does_not_say() -> None:
    assert is_final(TABLE) is None
    assert merge([with_final(TABLE, True), with_final(TABLE, False)]).is_final is None

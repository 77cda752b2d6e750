"""The definition that made a checkpoint, compared with the query's own before the first micro-batch.

Spark merges new rows into the state it finds, whatever definition made that state. So the definition is part
of the offsets that Spark logs before each batch. Our own source writes it into its offsets; a streaming
DataFrame from elsewhere gets a second source beside it that gives no rows and only carries the definition.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..operators.definition.change import differences, rewritten
from ..operators.table.windows import START

log = logging.getLogger("streamgauge.spark")

NAME = "streamgauge-definition"
_KEY = "definition"
_LABEL = "streamgauge.definition"


class ChangedDefinition(ValueError):
    """A checkpoint was made by another definition; the message says what is different."""


def pack(definition: Mapping[str, Any]) -> str:
    """A definition as short text, since Spark logs and shows it with every micro-batch."""
    text = json.dumps(definition, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def unpack(text: str) -> dict[str, Any]:
    """What `pack` wrote. Raises `ValueError` for anything else.

    >>> unpack(pack({"keys": ["lang"]}))
    {'keys': ['lang']}
    """
    try:
        found = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(f"not a packed definition: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"not a packed definition: {found!r}")
    return found


def check_same(before: str | None, after: str | None) -> None:
    """Raises `ChangedDefinition` if two packed definitions differ; None is an unknown one."""
    if before is None or after is None or before == after:
        return
    old, new = unpack(before), unpack(after)
    if found := differences(old, new) or _order(old, new):
        raise changed(found)
    for sentence in rewritten(old, new):
        log.warning("going on from a checkpoint that was written with another Polars or Python: %s", sentence)


def _order(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A change of the aggregates' order; state finds their columns by position, not by name."""
    names = [", ".join(told.get("aggregates", {})) for told in (before, after)]
    return [] if names[0] == names[1] else [f"the aggregates' order changed from {names[0]} to {names[1]}"]


def changed(found: Sequence[str]) -> ChangedDefinition:
    """The error that tells the differences, each in words."""
    return ChangedDefinition(
        f"the checkpoint was made by another definition: {'; '.join(found)}. Give the changed one a "
        "checkpoint folder of its own, or undo the change"
    )


def remembering(rows: DataFrame, definition: Mapping[str, Any]) -> DataFrame:
    """The same rows; a query over them refuses a checkpoint of another definition."""
    spark = rows.sparkSession
    spark.dataSource.register(DefinitionSource)
    remembered = spark.readStream.format(NAME).schema(rows.schema).option(_KEY, pack(definition)).load()
    return rows.unionAll(remembered)


def labelled(table: DataFrame, definition: Mapping[str, Any]) -> DataFrame:
    """A table of sketches whose micro-batches carry their definition, for `check_logged`."""
    return table.withMetadata(START, {_LABEL: pack(definition)})


def label_of(table: DataFrame) -> str | None:
    """The packed definition that `labelled` put on a table, if it has its window's start still."""
    return next((field.metadata.get(_LABEL) for field in table.schema if field.name == START), None)


def check_logged(batch: DataFrame, checkpoint: str, number: int) -> None:
    """Compare a micro-batch with what Spark logged when it was planned.

    Spark runs a batch again that an earlier query planned and didn't finish, before it asks any source.
    Raises `ChangedDefinition`. Without the window's start among the batch's columns nothing is compared.
    """
    label = label_of(batch)
    logged = batch.sparkSession.read.text(f"{checkpoint.rstrip('/')}/offsets/{number}").collect()
    for (line,) in logged:
        # A line for each source: JSON, or a dash.
        with suppress(json.JSONDecodeError):
            if isinstance(told := json.loads(line), dict):
                check_same(told.get(_KEY), label)


class DefinitionSource(DataSource):
    """A stream without rows, whose only offset is a definition."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return NAME

    # Spark calls it by the parameter's name.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        return DefinitionReader(self.options[_KEY])


class DefinitionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives nothing, and refuses to go on from another definition's offset."""

    def __init__(self, definition: str) -> None:
        self._definition = definition

    def initialOffset(self) -> dict[str, Any]:
        """The definition, for a new checkpoint."""
        return {_KEY: self._definition}

    def getDefaultReadLimit(self) -> ReadLimit:
        """There is nothing to limit."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to do: there is never anything new."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """`start` itself. Raises `ChangedDefinition`."""
        check_same(start.get(_KEY), self._definition)
        return start

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Nothing to report."""
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Nothing to read. Raises `ChangedDefinition`."""
        check_same(end.get(_KEY), self._definition)
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """No rows."""
        return iter(())

"""All errors of streamgauge that a caller may want to catch; `StreamgaugeError` is the base of every one.

    import streamgauge as sg

    try:
        posts.run(until="latest")
    except sg.errors.TopicError as error:
        ...

| error | meaning |
|---|---|
| `SketchError` | bytes or tables that are not sketches, or not of one kind, and can't be merged |
| `TopicError` | a topic that doesn't exist, was recreated, or has lost what a run needs |
| `RunError` | a run or a query that can't continue, or can't be changed as requested |
| `ReadError` | an unreadable partition: `NoAnswer`, `PositionGone`, `LogTruncated` or `CorruptError` |
| `DefinitionChanged` | a group, or a Spark checkpoint, that belongs to another definition |
| `GroupInUse` | a group that can't be reset, or skip messages, while it has members |
| `OffsetsAhead` | a group whose offset was set beyond what it has counted, which would leave messages out |
| `WrittenByNewer` | state, positions or a checkpoint that a newer version of streamgauge has written |
| `StateLimitError` | open windows that exceed the memory limit of a run |
| `SinkError` | a sink that can't accept a window |
| `TooManyRows`, `TooManyIds` | a join of streams, or `deduplicate`, that exceeds its limit |
| `WrongRows` | your function returned other columns or types than declared |
| `UnknownSchema`, `Unavailable` | a schema that the registry doesn't have, or an unreachable registry |
| `InputError` | a file or frame that can't be read, or whose columns are not the stream's |
| `JavaError` | no Java for Spark or Kafka, or only one that is too old |
| `OutletError` | an outlet that did not accept a message |
| `ArchiveError` | files that aren't a complete archive, or an archive that can't be continued |
| `UnsafeKeyError` | a rule's key that a program must not get as an argument |
| `PluginError` | an app or rule from another package that can't be used |
| `SqlError` | an SQL statement that can't be run, with line and column |
| `QueryError` | a question that a query server refused |
| `NotReady` | the table of a group that can't be read yet |
| `MissingExtraError` | a package of an extra that isn't installed; the message names the extra |

They are also Python's `ValueError`, `TypeError`, `LookupError`, `RuntimeError` or `ModuleNotFoundError`, if
one of these fits.
"""

from .operators.archive.segment import ArchiveError
from .operators.consumer.group.reset import GroupInUse
from .operators.consumer.group.set_offsets import OffsetsAhead
from .operators.consumer.merge.limits import StateLimitError
from .operators.definition.deduplication import TooManyIds
from .operators.definition.definition_diff import DefinitionChanged
from .operators.definition.functions import WrongRows
from .operators.definition.joining import TooManyRows
from .operators.files.inputs import InputError
from .operators.formats.registry import UnknownSchema
from .operators.formats.retryable_error import Unavailable
from .operators.java import JavaError
from .operators.kafka.source import CorruptError, LogTruncated, NoAnswer, PositionGone, ReadError
from .operators.kafka.topics import TopicError
from .operators.kept_form import WrittenByNewer
from .operators.plugins import PluginError
from .operators.rules.command import UnsafeKeyError
from .operators.rules.outlets.errors import OutletError
from .operators.sinks.sink import SinkError
from .queries.client import QueryError
from .queries.sql.errors import SqlError
from .queries.views.view import NotReady
from .sketches.core.errors import RunError, StreamgaugeError
from .sketches.core.extras import MissingExtraError
from .sketches.core.protocol import SketchError

__all__ = [
    "ArchiveError",
    "CorruptError",
    "DefinitionChanged",
    "GroupInUse",
    "InputError",
    "JavaError",
    "LogTruncated",
    "MissingExtraError",
    "NoAnswer",
    "NotReady",
    "OffsetsAhead",
    "OutletError",
    "PluginError",
    "PositionGone",
    "QueryError",
    "ReadError",
    "RunError",
    "SinkError",
    "SketchError",
    "SqlError",
    "StateLimitError",
    "StreamgaugeError",
    "TooManyIds",
    "TooManyRows",
    "TopicError",
    "Unavailable",
    "UnknownSchema",
    "UnsafeKeyError",
    "WrittenByNewer",
    "WrongRows",
]

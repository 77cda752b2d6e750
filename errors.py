"""All errors of streamgauge that a caller may want to catch; `StreamgaugeError` is the base of every one.

    import streamgauge as sg

    try:
        posts.run(until="latest")
    except sg.errors.TopicError as error:
        ...

| error | what it says |
|---|---|
| `SketchError` | bytes or tables that are not sketches, or not of one kind, and can't be merged |
| `TopicError` | a topic that doesn't exist, was recreated, or has lost what a run needs |
| `ReadError` | a partition that can't be read; `NoAnswer`, `PositionGone`, `CorruptError` say why |
| `DefinitionChanged` | a group, or a checkpoint of Spark, that was made by another definition |
| `GroupInUse` | a group that can't be reset while it has members |
| `StateLimitError` | open windows that take more memory than a run may |
| `SinkError` | a sink that can't take a window |
| `TooManyRows`, `TooManyIds` | a join of streams, or `deduplicate`, that would hold more than it may |
| `WrongRows` | a function of yours that gave rows of other columns or types than it says |
| `UnknownSchema`, `Unavailable` | a schema that the registry doesn't have, or a registry that can't be had |
| `InputError` | a file or frame that can't be read, or whose columns are not the stream's |
| `JavaError` | no Java for Spark or Kafka, or only one that is too old |
| `OutletError` | an outlet that did not take a message of alerts |
| `ArchiveError` | files that are no archive, or not a whole one, and what an archive can't go on with |
| `UnsafeKeyError` | a rule's key that a program must not get as an argument |
| `PluginError` | an app or a rule of another package that can't be used |
| `SqlError` | a statement of SQL that can't be run as it is written, with line and column |
| `QueryError` | a question that a query server refused |

They are `ValueError`, `TypeError`, `LookupError` or `RuntimeError` of Python, too, where one of these fits.
"""

from .operators.archive.segment import ArchiveError
from .operators.consumer.group.reset import GroupInUse
from .operators.consumer.merge.limits import StateLimitError
from .operators.definition.deduplication import TooManyIds
from .operators.definition.definition_diff import DefinitionChanged
from .operators.definition.functions import WrongRows
from .operators.definition.joining import TooManyRows
from .operators.files.inputs import InputError
from .operators.formats.registry import UnknownSchema
from .operators.formats.retryable_error import Unavailable
from .operators.java import JavaError
from .operators.kafka.source import CorruptError, NoAnswer, PositionGone, ReadError
from .operators.kafka.topics import TopicError
from .operators.plugins import PluginError
from .operators.rules.command import UnsafeKeyError
from .operators.rules.outlets.errors import OutletError
from .operators.sinks.sink import SinkError
from .queries.client import QueryError
from .queries.sql.errors import SqlError
from .sketches.core.errors import StreamgaugeError
from .sketches.core.protocol import SketchError

__all__ = [
    "ArchiveError",
    "CorruptError",
    "DefinitionChanged",
    "GroupInUse",
    "InputError",
    "JavaError",
    "NoAnswer",
    "OutletError",
    "PluginError",
    "PositionGone",
    "QueryError",
    "ReadError",
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
    "WrongRows",
]

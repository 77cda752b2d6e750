"""The options of a run as one value, validated on creation."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, get_args

from ..watching.address import address_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ..sinks.sink import Sink
    from ..table.sketch_table import SketchTable
    from ..windows.durations import Duration

DeliveryName = Literal["at_most_once", "at_least_once", "effectively_once", "exactly_once"]
OnWindow = Callable[["SketchTable"], None]
F = TypeVar("F", bound=Callable[..., Any])

LEAST_STATE = 1_000_000
"""The lowest limit for the memory of a stream's windows, in bytes."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""A valid group name: a topic name with room for the suffix of its table topic."""


class SharedKeywords(TypedDict, total=False):
    """The keywords of `RunOptions` that apply to all streams that run together, for ``**options``."""

    delivery: DeliveryName
    until: Literal["latest"] | None
    workers: int
    group_id: str | None
    start: Literal["earliest", "latest"]
    table_partitions: int
    dead_letters: str | None
    late: str | None
    emit: Literal["close", "checkpoint", "both"]
    state_bytes: int | None
    at_limit: Literal["spill", "refuse"]
    truncated: Literal["stop", "continue"]
    checkpoint_seconds: float
    idle_seconds: float
    connect_seconds: float | None
    metrics: str | int | None
    registry: CollectorRegistry | None
    keep_windows: int
    table: str | Path | None
    keep: Duration | None


class RunKeywords(SharedKeywords, total=False):
    """The keywords of `RunOptions`, for functions that pass on ``**options``."""

    on_window: OnWindow | None
    sinks: Sequence[Sink]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    delivery
        The guarantee if a worker dies, is paused or is cut off while it delivers its results:

        | delivery | counts | dead letters | costs |
        |---|---|---|---|
        | `exactly_once` | exact | exact | a transaction each checkpoint |
        | `effectively_once` | exact | may be repeated | the log's end is read when partitions move |
        | `at_least_once` | never too few | may be repeated | the same |
        | `at_most_once` | never too many | may be lost | the same |

        `exactly_once` sends deltas and commits positions in one transaction; a transaction left open by a
        dead worker blocks readers for ``transaction.timeout.ms``. The other deliveries need no permission for
        transactions. `effectively_once` sends deltas, then commits. A worker that is assigned a partition
        claims it in the table topic, and continues after the deltas there: mergers drop ranges that they
        already have, and all deltas sent before the claim (`worker.partition_recovery`). `at_least_once` does
        the same without claims: `Summary.overlaps` counts deltas that counted messages twice, for example
        from a worker that was paused. `at_most_once` commits first, and results held by a dying worker are
        lost. Sinks always get closed windows exactly once.
    until
        ``"latest"`` ends the run when all messages that exist at its start are counted; None runs for ever.
    on_window
        Called with the table of sketches of each window as it closes, in the merger's thread. If it raises,
        the run ends, and the next run of the group emits that window again. A window that only silence has
        closed may always be emitted again, complete, with the rows that followed: replace the earlier one by
        its `window_start` and keys (see `Stream.tumbling`).
    workers
        The number of sketching workers. With more than one, each is a process.
    group_id
        The consumer group: runs of the same group share the work, and a later run resumes where the last one
        ended. A group has one definition. Without a group the run is independent and leaves nothing behind.
    start
        Where a new group begins: ``"earliest"`` with the first message of the topic, ``"latest"`` with
        messages that arrive from now on. Partitions added later are read from their beginning.
    table_partitions
        The number of partitions of a new table topic: that many runs of a group can merge.
    dead_letters
        The topic for messages that can't be counted: ``"<topic>.dead-letters"`` if empty; None drops them.
    late
        The topic for messages whose windows are all over: ``"<topic>.late-messages"`` if empty; None only
        counts them. They are sent unchanged, with a header `late_by` that states the delay, in the
        transaction of the checkpoint. Messages that only the merger finds to be late, because their partition
        was silent while others continued, exist only as sketches and can't be sent there. The account counts
        them as late, and so does the metric ``messages_missed_total``.
    emit
        When `on_window` gets windows: ``"close"``, as they close; ``"checkpoint"``, every
        `checkpoint_seconds`, closed or open, if they have changed; ``"both"``. A window that is emitted while
        it fills is emitted again, complete: `SketchTable.is_final` distinguishes them. Sinks only get closed
        windows. With ``"checkpoint"`` and ``"both"``, a window that only silence has closed is emitted again
        once it is final, to sinks as well, even if it got no further row.
    state_bytes
        The memory in bytes for open windows in this process; no limit if None. A worker whose sketches take a
        quarter of that delivers them before the next checkpoint is due. The state of count windows in a
        worker, about 100 bytes per group, may take as much, and can't be moved to disk: beyond that the run
        ends with a `StateLimitError`, whatever `at_limit` is.
    at_limit
        What happens when the windows take more: ``"spill"`` moves them to temporary files (in TMPDIR), from
        which they are read as they close; ``"refuse"`` ends the run with a `StateLimitError` that names the
        largest. A later run of the group resumes where it ended.
    truncated
        What happens when a partition's log has lost messages that were counted, as after an unclean leader
        election: ``"stop"`` ends the run with a `LogTruncated` error that names them; ``"continue"`` resumes
        where the log was truncated, and `Account.truncated` counts the messages that are in the counts and no
        longer in the log. It needs ``delivery="exactly_once"``.
    checkpoint_seconds
        The time between checkpoints, at which everything read is delivered. With a shorter one,
        results are visible sooner, at the price of more transactions. While messages arrive slowly, a worker
        gathers them until a checkpoint is due.
    idle_seconds
        How long a partition must be silent, since its last row with an event time and with nothing left to
        read, before it stops holding windows open (see `Stream.tumbling`).
    connect_seconds
        How long a starting run waits for unreachable brokers. None waits for ever, as a run does if its
        brokers become unreachable later; otherwise a `TopicError` reports that none answered.
    sinks
        Further destinations of closed windows: any of `AnswersToKafka`, `SketchesToKafka` and
        `SketchesToParquet`, each with every window exactly once, whatever the `delivery` of rows. They belong
        to a run and not to the stream's definition, so a group can resume with an additional sink.
    table
        A folder, or a URL such as ``"s3://bucket/minutes"``, that stores the run's closed windows, as the
        sink `SketchesToParquet` does with ``compacted=True``: Parquet, each window exactly once. The group's
        table topic only holds open windows; `streamgauge serve --group NAME --table FOLDER` and SQL
        (``GROUP='…', SKETCHES='…'``) query both as one table. All runs of a group must name the same folder.
        Each stream that runs together with others has a folder of its name in it.
    keep
        How long the windows in `table` are stored after their end, such as ``"30d"``; for ever if None.
    metrics
        The address of the run's Prometheus metrics (``/metrics``) and health (``/health`` and ``/ready``): a
        port on this machine, such as 9400 (0 selects a free one, see `Run.metrics_address`), or
        ``"0.0.0.0:9400"`` for other machines as well. Nothing is served if None.
    registry
        Your own `prometheus_client.CollectorRegistry` to which the metrics are added, with or without a port;
        several runs may share one.
    keep_windows
        The number of closed windows that an endless run stores for `Run.table`; at most 1 GiB.

    Raises `ValueError` or `TypeError`, naming the option, for an invalid value.

    >>> RunOptions(workers=0)
    Traceback (most recent call last):
    ValueError: workers must be an integer ≥ 1, got 0
    """

    delivery: DeliveryName = "exactly_once"
    until: Literal["latest"] | None = None
    on_window: OnWindow | None = None
    workers: int = 1
    group_id: str | None = None
    start: Literal["earliest", "latest"] = "earliest"
    table_partitions: int = 1
    dead_letters: str | None = ""
    late: str | None = None
    emit: Literal["close", "checkpoint", "both"] = "close"
    state_bytes: int | None = None
    at_limit: Literal["spill", "refuse"] = "spill"
    truncated: Literal["stop", "continue"] = "stop"
    checkpoint_seconds: float = 1.0
    idle_seconds: float = 5.0
    connect_seconds: float | None = None
    metrics: str | int | None = None
    registry: CollectorRegistry | None = None
    keep_windows: int = 1_000
    sinks: Sequence[Sink] = ()
    table: str | Path | None = None
    keep: Duration | None = None

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if (given := getattr(self, name)) not in known:
                raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {given!r}")
        for name, least in _COUNTS.items():
            if type(given := getattr(self, name)) is not int or given < least:
                raise ValueError(f"{name} must be an integer ≥ {least}, got {given!r}")
        if self.truncated == "continue" and self.delivery != "exactly_once":
            raise ValueError(
                f'truncated="continue" needs delivery="exactly_once", got {self.delivery!r}: only with that '
                "is it certain which of the lost messages were counted"
            )
        if self.state_bytes is not None and (
            type(self.state_bytes) is not int or self.state_bytes < LEAST_STATE
        ):
            raise ValueError(
                f"state_bytes must be an integer ≥ {LEAST_STATE:,}, or None, got {self.state_bytes!r}"
            )
        for name in _SECONDS if self.connect_seconds is None else (*_SECONDS, "connect_seconds"):
            if not _is_positive(given := getattr(self, name)):
                raise ValueError(f"{name} must be a number of seconds above 0, got {given!r}")
        for name in _NAMES:
            if not _is_name(given := getattr(self, name)):
                raise ValueError(
                    f"{name} must be a name of at most 200 letters, digits, dots, dashes and underscores, "
                    f"got {given!r}"
                )
        if self.metrics is not None:
            address_of(self.metrics)
        if self.registry is not None and not hasattr(self.registry, "register"):
            raise TypeError(
                f"registry must be a prometheus_client.CollectorRegistry or None, got {self.registry!r}"
            )
        if self.on_window is not None and not callable(self.on_window):
            raise TypeError(f"on_window must be a function of one table, got {self.on_window!r}")
        from ..sinks.sink import is_sink  # imports everything that writes and reads tables

        if not isinstance(self.sinks, list | tuple) or not all(map(is_sink, self.sinks)):
            raise TypeError(
                'sinks must be a list of sinks, such as sinks=[AnswersToKafka("answers")], '
                f"got {self.sinks!r}"
            )
        if self.keep is not None and self.table is None:
            raise ValueError(
                "keep sets how long windows are stored in table=, which is missing; set it to a folder, got "
                f"keep={self.keep!r}"
            )
        if self.table is not None:
            _ = self.all_sinks  # raises now for an invalid folder or length

    @cached_property
    def all_sinks(self) -> list[Sink]:
        """The sinks, including that of `table`."""
        if self.table is None:
            return list(self.sinks)
        from ..sinks.sketches_to_parquet import SketchesToParquet

        return [*self.sinks, SketchesToParquet(self.table, self.keep, compacted=True)]

    def dead_letter_topic(self, topic: str) -> str | None:
        """The topic for a topic's messages that can't be counted, if any.

        >>> RunOptions().dead_letter_topic("posts"), RunOptions(dead_letters=None).dead_letter_topic("posts")
        ('posts.dead-letters', None)
        """
        return f"{topic}.dead-letters" if self.dead_letters == "" else self.dead_letters

    def late_topic(self, topic: str) -> str | None:
        """The topic for a topic's late messages, if any.

        >>> RunOptions().late_topic("posts"), RunOptions(late="").late_topic("posts")
        (None, 'posts.late-messages')
        """
        return f"{topic}.late-messages" if self.late == "" else self.late


def with_run_options(function: F) -> F:
    """Wrap a function that passes its ``**options`` on; its signature lists the fields of `RunOptions` for
    `help`.

    An unknown option is a `TypeError` that suggests the nearest one.

    >>> inspect.signature(with_run_options(lambda **options: None)).parameters["workers"]
    <Parameter "workers: 'int' = 1">
    """
    own = dict(inspect.signature(function).parameters)
    keywords = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(RunOptions)
        if one.name not in own
    ]
    first = [one for one in own.values() if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    last = [one for one in own.values() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    signature = inspect.signature(function).replace(parameters=[*first, *keywords, *last])
    known = signature.parameters

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given.keys() - known.keys():
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}=?" if near else f"its options are {', '.join(list(known)[1:])}"
            raise TypeError(f"{function.__name__}: unknown argument {name}=; {hint}")
        return function(*args, **given)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(F, checked)


_CHOICES: dict[str, tuple[Any, ...]] = {
    "delivery": get_args(DeliveryName),
    "until": (None, "latest"),
    "start": ("earliest", "latest"),
    "at_limit": ("spill", "refuse"),
    "truncated": ("stop", "continue"),
    "emit": ("close", "checkpoint", "both"),
}
_COUNTS = {"workers": 1, "table_partitions": 1, "keep_windows": 0}
_SECONDS = ("checkpoint_seconds", "idle_seconds")
_NAMES = ("group_id",)


def _is_positive(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < math.inf


def _is_name(given: object) -> bool:
    return given is None or (isinstance(given, str) and _NAME.fullmatch(given) is not None)

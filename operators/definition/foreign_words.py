"""Terms of Kafka Streams, Flink, Faust, Quix Streams, Spark and Polars, and our equivalents."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

_TUMBLING = '.tumbling("1m"), .hopping("1h", every="1m") or .session("30m")'
_COLUMNS = ".with_columns(...) with expressions, or .map_batches(...) with a function"
METHODS = {
    **dict.fromkeys(("apply", "map", "map_values", "mapValues", "update", "withColumn"), _COLUMNS),
    **dict.fromkeys(("flat_map", "flatMap", "expand"), ".explode(...) of a list column"),
    **dict.fromkeys(
        ("reduce", "aggregate", "fold", "count", "sum"), ".agg(name=count()), or another aggregate"
    ),
    **dict.fromkeys(
        ("groupby", "groupBy", "group_by_key", "groupByKey", "key_by", "keyBy"), '.group_by("user")'
    ),
    **dict.fromkeys(
        ("to_kafka", "to_topic", "to", "sink", "sink_to", "sinkTo", "through"), '.rows_to_kafka("topic")'
    ),
    **dict.fromkeys(("windowed_by", "windowedBy", "group_by_dynamic"), _TUMBLING),
    **dict.fromkeys(("tumbling_window", "tumbling_count_window"), '.tumbling("1m"), or .count_window(100)'),
    "hopping_window": '.hopping("1h", every="1m")',
    **dict.fromkeys(("sliding_window", "rolling"), '.sliding("10m")'),
    "session_window": '.session("30m")',
    **dict.fromkeys(("cumulate_window", "cumulative", "cumulating"), '.cumulate("1d", every="1m")'),
    **dict.fromkeys(
        ("with_watermark", "withWatermark"), 'delay= of the windows, as in .tumbling("1m", delay="10s")'
    ),
    **dict.fromkeys(("where", "filter_not"), ".filter(...)"),
    **dict.fromkeys(("drop_duplicates", "dropDuplicates", "unique"), '.deduplicate("id", within="10m")'),
    **dict.fromkeys(
        ("left_join", "leftJoin", "interval_join", "join_asof"),
        '.join(other, on="id", within="10m", how="left")',
    ),
    **dict.fromkeys(("union", "concat"), ".merge(other)"),
    **dict.fromkeys(
        ("print", "foreach", "for_each", "collect", "sink_parquet"), "run(on_window=...) or run(sinks=[...])"
    ),
    "split": ".branch(...)",
    **dict.fromkeys(("drop", "rename"), ".select(...) of the columns to keep"),
    "distinct": '.agg(users=distinct("user"))',
    **dict.fromkeys(("peek", "tap"), "run(on_window=...) or run(sinks=[...])"),
}
"""What to write instead, by the name of a method that a stream doesn't have."""

KEYWORDS = {
    **dict.fromkeys(
        ("grace", "grace_ms", "grace_period", "allowed_lateness", "lateness", "watermark"), "delay"
    ),
    **dict.fromkeys(
        ("period", "step", "advance", "slide", "hop", "step_ms", "duration", "duration_ms"), "every"
    ),
    **dict.fromkeys(("inactivity_gap", "timeout", "gap_ms", "inactivity_gap_ms"), "gap"),
    **dict.fromkeys(("window", "within_ms", "grace_join"), "within"),
    **dict.fromkeys(("key_columns", "left_on", "keys"), "on"),
    **dict.fromkeys(("topics", "topic_name", "topic_pattern"), "topic"),
    **dict.fromkeys(("brokers", "servers", "broker_address", "bootstrap"), "bootstrap_servers"),
    **dict.fromkeys(("schema", "value_schema", "value_deserializer", "format"), "value"),
    **dict.fromkeys(("timestamp", "timestamp_extractor", "event_time", "time_column"), "time"),
    **dict.fromkeys(("settings", "options", "consumer_extra_config", "kafka_config"), "config"),
    **dict.fromkeys(("group", "consumer_group", "consumer_group_id", "application_id"), "group_id"),
    **dict.fromkeys(("auto_offset_reset", "offset_reset", "starting_offsets"), "start"),
    **dict.fromkeys(("processing_guarantee", "guarantee", "guarantees"), "delivery"),
    **dict.fromkeys(("commit_interval", "checkpoint_interval", "commit_every"), "checkpoint_seconds"),
    **dict.fromkeys(("parallelism", "concurrency", "num_workers", "threads"), "workers"),
    **dict.fromkeys(("dead_letter", "dead_letter_topic", "dlq"), "dead_letters"),
    **dict.fromkeys(("on_late", "late_topic"), "late"),
}
"""Our argument, by the foreign name; used if the method has it."""

OF_RUNS = ("group_id", "start", "until", "delivery", "workers", "on_window", "sinks", "checkpoint_seconds")
"""Arguments that only `run` and `start` accept."""


def answers_in_our_words(cls: T) -> T:
    """Make a class's errors for unknown methods and arguments suggest our terms for foreign ones."""
    for name in dir(cls):
        given = inspect.getattr_static(cls, name)
        if name.startswith("_") or (not isinstance(given, classmethod) and not inspect.isfunction(given)):
            continue
        function = given.__func__ if isinstance(given, classmethod) else given
        wrapped = _wrapped(function)
        if wrapped is not function:
            setattr(cls, name, classmethod(wrapped) if isinstance(given, classmethod) else wrapped)
    cls.__getattr__ = _no_such_method  # type: ignore[attr-defined]
    return cls


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function's errors for foreign keywords suggest ours; unchanged if it accepts any keyword."""
    parameters = inspect.signature(function).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    ours = {foreign: word for foreign, word in KEYWORDS.items() if word in parameters}
    ours = {foreign: word for foreign, word in ours.items() if foreign not in parameters}
    if takes_any or not ours:
        return function

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given.keys() & ours.keys():
            raise TypeError(f"{function.__name__}: unknown argument {name}=; write {ours[name]}=")
        for name in (given.keys() & OF_RUNS) - parameters.keys():
            raise TypeError(
                f"{function.__name__}: unknown argument {name}=; pass it to run(...) or start(...)"
            )
        return function(*args, **given)

    return checked


def _no_such_method(self: Any, name: str) -> Any:
    hint = f": write {METHODS[name]}" if name in METHODS else ""
    raise AttributeError(f"a {type(self).__name__} has no .{name}{hint}", name=name, obj=self)

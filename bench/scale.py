"""What a message, a delta and a group cost, and what that makes of 1 M, 10 M and 100 M messages a second.

Costs are seconds of one core and bytes, of a stream with a count, a distinct count and quantiles by a key.
They are put into the formula of `docs/scaling.md` (`Costs.needs`), which is checked against a simulated day:
deltas that 64 workers made, recorded once and moved on in time, are replayed into a merger, whose time is
compared with what the formula says.

``SPARK=1,2,4`` measures what executors use in place of that: a topic read by so many of them, of a core each,
on this machine, in micro-batches of ``EACH`` messages. ``DRIVER=1000000`` measures what the driver's memory
grows by when it is given so many closed groups at once. ``STEP`` is how many minutes lie between two deltas
of a worker in that day, ``KEYS`` the number of groups.
"""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import streamgauge as sg
from streamgauge.apps.sizing.costs import Costs
from streamgauge.formats import Messages
from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import END, START
from streamgauge.operators.watermarks.position import Input, Position

from .measure import line, medians, seconds

WORKERS = 64
STEP = int(os.environ.get("STEP", 1))
DELTAS = 1_440 // STEP
GROUPS = int(os.environ.get("KEYS", 200))
SPARK = [int(n) for n in os.environ.get("SPARK", "").split(",") if n]
EACH = int(os.environ.get("EACH", 60_000))
DRIVER = int(os.environ.get("DRIVER", 0))
BEGIN = 1_767_225_600
MINUTE_US = 60_000_000
SCHEMA = {"at": pl.Int64, "key": pl.Int64, "user": pl.Int64, "price": pl.Float64}
VALUE = sg.json(SCHEMA)
STREAM = (
    sg.Stream.from_schema(SCHEMA, time=pl.from_epoch("at"))
    .group_by("key")
    .tumbling("1m", delay="0s")
    .agg(n=sg.count(), users=sg.distinct("user"), prices=sg.quantiles("price"))
)


def frame_of(rows: int, groups: int, seed: int, minute: int = 0) -> pl.DataFrame:
    """Rows of one minute."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "at": BEGIN + 60 * minute + np.sort(random.integers(0, 60, rows)),
            "key": random.integers(0, groups, rows),
            "user": random.integers(0, 1_000_000, rows),
            "price": random.lognormal(3, 1, rows),
        }
    )


def sketched(frame: pl.DataFrame, partition: int = 0) -> Delta:
    """The delta of these rows of a partition."""
    state = PartitionState(STREAM, "input", partition, 0, clock=lambda: BEGIN + 1e9)
    state.add(frame, None, np.arange(frame.height), frame.height, lambda numbers, reason: None)
    return state.delta()


def records(delta: Delta) -> list[Record]:
    """A delta as the table topic has it."""
    messages = encode(delta, "table", 1, largest=1 << 30)
    return [Record(message.value, dict(message.headers), 0, "") for message in messages]


def moved(delta: Delta, minutes: int, number: int) -> Delta:
    """The same sketches, of rows as many minutes later, as the partition's next range but `number`."""
    table = delta.table
    assert table is not None
    for at, name in enumerate((START, END)):
        times = table.column(name).combine_chunks()
        later = pa.array(times.view(pa.int64()).to_numpy() + minutes * MINUTE_US).view(times.type)
        table = table.set_column(at, table.schema.field(name), later)
    size = delta.next_offset - delta.first_offset
    time_there = replace(delta.time, seen_us=delta.time.seen_us + minutes * MINUTE_US)
    return replace(
        delta,
        table=table,
        first_offset=number * size,
        next_offset=(number + 1) * size,
        time=time_there,
        messages={pane + minutes * MINUTE_US: n for pane, n in delta.messages.items()},
    )


def close(merger: Merger) -> int:
    """Emit what is due, as answers; how many groups."""
    rows = 0
    while (groups := merger.due()) is not None:
        rows += len(groups)
        sg.query(groups.table)
        merger.mark_emitted()
    return rows


def costs() -> Costs:
    """Measured on this machine."""
    rows = 100_000
    frame = frame_of(rows, 1_000, 1)
    messages = Messages.of([line.encode() for line in frame.write_ndjson().splitlines()])
    decoding, sketching = medians(lambda: VALUE.decode(messages), lambda: sketched(frame))
    # Deltas of few and of many groups tell what a delta and what a row costs.
    small, large = (sketched(frame_of(20 * n, n, 2)) for n in (100, 10_000))
    assert small.table is not None and large.table is not None
    encoding, *_ = medians(lambda: encode(large, "table", 1))

    def merging(delta: Delta, many: int) -> float:
        kept = records(delta)

        def run() -> None:
            merger = Merger(STREAM, [Input("input", 0)])
            for number in range(many):
                (record,) = kept
                size = delta.next_offset
                again = decode(record)
                merger.offer(
                    replace(again, first_offset=number * size, next_offset=(number + 1) * size), number
                )

        return medians(run)[0] / many

    few, many = merging(small, 100), merging(large, 3)
    row = (many - few) / (large.table.num_rows - small.table.num_rows)
    merger = Merger(STREAM, [Input("input", 0)])
    merger.offer(large, 0)
    merger.offer(moved(large, 1, 1), 1)
    state = merger.state_bytes / (2 * large.table.num_rows)
    merger.offer(moved(large, 2, 2), 2)
    closing = seconds(lambda: close(merger)) / (2 * large.table.num_rows)
    return Costs(
        decode=decoding / rows,
        sketch=sketching / rows,
        encode_row=encoding / large.table.num_rows,
        merge_row=row,
        merge_delta=max(few - row * small.table.num_rows, 0.0),
        close_row=closing,
        row_bytes=sum(len(record.value) for record in records(large)) / large.table.num_rows,
        state_bytes=state,
    )


def simulated_day(of: Costs) -> tuple[float, float, int]:
    """What a merger uses of a core for a day of 64 workers, what the formula says, and groups closed."""
    recorded = [sketched(frame_of(20 * GROUPS, GROUPS, worker), worker) for worker in range(WORKERS)]
    merger = Merger(STREAM, [Input("input", worker) for worker in range(WORKERS)])
    spent, closed, offset = 0.0, 0, 0
    for number in range(DELTAS):
        logged = [record for delta in recorded for record in records(moved(delta, number * STEP, number))]
        begin = time.process_time()
        for record in logged:
            merger.offer(decode(record), offset)
            offset += 1
        closed += close(merger)
        spent += time.process_time() - begin
    rows = sum(delta.table.num_rows for delta in recorded if delta.table is not None) * DELTAS
    said = rows * of.merge_row + WORKERS * DELTAS * of.merge_delta + closed * of.close_row
    return spent, said, closed


def planning(partitions: int) -> tuple[float, int, int]:
    """Of a micro-batch of Spark: seconds to plan it, bytes of its offsets in the log, bytes of memory."""
    from streamgauge.spark_udafs.kafka.offsets import Known, Offsets
    from streamgauge.spark_udafs.kafka.options import KafkaOptions
    from streamgauge.spark_udafs.kafka.planning import plan_tasks

    stream = (
        sg.Stream.from_kafka("input", value=VALUE, time=pl.from_epoch("at"), bootstrap_servers="localhost:1")
        .tumbling("1m")
        .agg(n=sg.count())
    )
    options = KafkaOptions.parse({"subscribe": "input"}, stream, stream.reading.kafka_source.settings)
    places = [("input", number) for number in range(partitions)]

    def plan() -> str:
        begin = dict.fromkeys(places, 1_000_000)
        known = {place: Known(Position(1_000_000)) for place in places}
        end = Offsets("query", dict.fromkeys(places, 1_010_000), begin, known, clock_us=BEGIN * 10**6)
        logged = json.dumps(end.to_json())
        plan_tasks(options, Offsets.from_json(json.loads(logged)))
        return logged

    (spent,) = medians(plan)
    tracemalloc.start()
    logged = plan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return spent, len(logged), peak


def main() -> list[dict[str, Any]]:
    """A line for each cost, the day, and each rate; of Spark alone if that is what is asked for."""
    if SPARK or DRIVER:
        collected = [row for executors in SPARK for row in on_spark(executors, close_at_end=True)]
        return [*collected, driver_memory(DRIVER)] if DRIVER else collected
    of = costs()
    spent, said, closed = simulated_day(of)
    collected = [
        line(
            "a message: decoded, sketched",
            f"{1e9 * of.decode:,.0f} ns, {1e9 * of.sketch:,.0f} ns",
            "",
            "",
        ),
        line(
            "a delta's row: encoded, merged; a delta; a closed group",
            f"{1e6 * of.encode_row:.2f} µs, {1e6 * of.merge_row:.2f} µs; {1e3 * of.merge_delta:.2f} ms; "
            f"{1e6 * of.close_row:.2f} µs",
            "",
            "",
        ),
        line(
            "bytes: a delta's row, a group of an open window",
            f"{of.row_bytes:,.0f}, {of.state_bytes:,.0f}",
            "",
            "",
        ),
        line(
            f"a day of {WORKERS} workers, a delta every {STEP} minutes, {GROUPS} groups, {closed:,} closed",
            f"{spent:.1f} s of a core",
            f"{said:.1f} s by the formula",
            said / spent,
            "0.5 to 2 ×",
        ),
    ]
    for partitions in (10, 100, 1_000):
        spent, logged, peak = planning(partitions)
        collected.append(
            line(
                f"Spark's driver plans a micro-batch of {partitions:,} partitions",
                f"{1e3 * spent:.1f} ms, {logged / 1e3:.1f} kB of offsets, {peak / 1e6:.1f} MB of memory",
                "",
                "",
            )
        )
    for rate, groups, tables in ((1e6, 10_000, 4), (1e7, 100_000, 16), (1e8, 1_000_000, 64)):
        for every, keyed in ((10.0, False), (60.0, False), (10.0, True)):
            needs = of.needs(rate, int(rate / 50_000), groups, every, tables, keyed=keyed)
            shown = ", ".join(f"{value:,.1f} {name}" for name, value in needs.items())
            claim = f"{rate / 1e6:.0f} M messages/s, {groups:,} groups, a delta every {every:.0f} s"
            collected.append(line(claim + ", keyed" * keyed, shown, "", ""))
    return collected


def on_spark(executors: int) -> list[dict[str, Any]]:
    """What executors of a core each use for a message by stage, shuffle for a window and group, and keep."""
    from tempfile import mkdtemp

    from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

    from .spark_shuffle import shuffled

    each, groups, partitions, minutes, first = EACH, 1_000, 8, 10, 3
    rows = minutes * each
    folder = Path(mkdtemp())
    with EmbeddedKafka() as kafka:
        kafka.create_topic("input", partitions)
        frames = [frame_of(each, groups, 3 + minute, minute) for minute in range(minutes)]
        send(kafka.bootstrap_servers, pl.concat(frames), partitions)
        spark = cluster_of(executors, 700)
        stream = (
            sg.Stream.from_kafka(
                "input", value=VALUE, time=pl.from_epoch("at"), bootstrap_servers=kafka.bootstrap_servers
            )
            .group_by("key")
            .tumbling("1m", delay="0s")
            .agg(n=sg.count(), users=sg.distinct("user"), prices=sg.quantiles("price"))
        )
        driver = spark.sparkContext._gateway.proc.pid
        spent = Spent(driver)
        table = stream.on_spark(spark, max_per_trigger=each, close_at_end=True)
        query = sg.spark.write(
            table,
            folder / "checkpoint",
            spent,
            sg.spark.SketchesToParquet(folder / "windows"),
            available_now=True,
        )
        query.awaitTermination()
        spent.after.append(cpu_by_part(driver))
        records, bytes_shuffled = shuffled(spark)
        states = [p["stateOperators"][0] for p in query.recentProgress if p["stateOperators"]]
        kept = max(states, key=lambda state: state["numRowsTotal"])
        files = sum(path.stat().st_size for path in (folder / "checkpoint" / "state").rglob("*.*"))
        spark.stop()
    # The first micro-batches load what all later ones use.
    begin, end = spent.after[first], spent.after[-1]
    messages = rows - (first + 1) * each
    shown = ", ".join(f"{1e6 * (end[part] - begin[part]) / messages:.2f} µs {part}" for part in end)
    total = 1e6 * (sum(end.values()) - sum(begin.values())) / messages
    name = f"on Spark, {executors} executors"
    return [
        line(f"{name}: of a core, a message", f"{total:.2f} µs: {shown}", "", ""),
        line(
            f"{name}: shuffled; state",
            f"{bytes_shuffled / records:,.0f} bytes a row, "
            f"{bytes_shuffled / (groups * minutes):,.0f} bytes a window and group; "
            f"{kept['numRowsTotal']:,} rows of state at most, "
            f"{kept['memoryUsedBytes'] / 1e6:.1f} MB in memory, {files / 1e6:.1f} MB of files in all",
            "",
            "",
        ),
    ]


class Spent:
    """A sink that notes, at each micro-batch, what each part of the cluster has used of a core."""

    clocked = True

    def __init__(self, driver: int) -> None:
        self.after: list[dict[str, float]] = []
        self._driver = driver

    def __call__(self, table: Any, batch: Any) -> None:
        self.after.append(cpu_by_part(self._driver))


def driver_memory(groups: int) -> dict[str, Any]:
    """What the driver holds at most when a micro-batch's closed windows are brought to it."""
    spark = cluster_of(1, 2_000, {"spark.driver.memory": "6g", "spark.driver.maxResultSize": "4g"})
    driver = spark.sparkContext._gateway.proc.pid
    columns = "id % {} AS key", "xxhash64(id) % 1000000 AS user", "id / 7 AS price"
    rows = spark.range(2 * groups, numPartitions=4).selectExpr(columns[0].format(groups), *columns[1:])
    requested = {"n": sg.count(), "users": sg.distinct("user"), "prices": sg.quantiles("price")}
    sg.spark.as_table(sg.spark.sketch(rows.limit(1_000)).groupBy("key").agg(**requested))
    before = [largest_memory(process) for process in (os.getpid(), driver)]
    table = sg.spark.as_table(sg.spark.sketch(rows).groupBy("key").agg(**requested))
    assert table.num_rows == groups
    size = table.to_arrow().nbytes
    python, jvm = (largest_memory(one) - then for one, then in zip((os.getpid(), driver), before))
    spark.stop()
    return line(
        f"Spark's driver is given {groups:,} closed groups, {size / 1e6:,.0f} MB",
        f"{python / 1e6:,.0f} MB more in Python, {jvm / 1e6:,.0f} MB more in its JVM, at most",
        "",
        "",
    )


def cluster_of(executors: int, megabytes: int, more: Mapping[str, str] = {}) -> Any:
    """A session on so many executors of a core each, processes of this machine."""
    import pyspark

    os.environ |= {"SPARK_SCALA_VERSION": "2.13", "SPARK_HOME": pyspark.__path__[0]}
    settings = {
        "spark.executor.memory": f"{megabytes}m",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.sql.shuffle.partitions": "8",
        **more,
    }
    return sg.spark.session("scale", f"local-cluster[{executors},1,{megabytes}]", settings)


def largest_memory(process: int) -> int:
    """The most bytes of memory that a process has had."""
    for entry in Path(f"/proc/{process}/status").read_text().splitlines():
        if entry.startswith("VmHWM:"):
            return 1_024 * int(entry.split()[1])
    raise LookupError(process)


def send(servers: str, frame: pl.DataFrame, partitions: int) -> None:
    """Each row as a message, from partition to partition."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4"})
    for number, value in enumerate(frame.write_ndjson().encode().splitlines()):
        while True:
            try:
                producer.produce("input", value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def cpu_by_part(driver: int) -> dict[str, float]:
    """What the driver's JVM and all below it have used of a core, those that have ended included."""
    executors = {one for one in _below(driver) if b"CoarseGrainedExecutorBackend" in _command(one)}
    own = {one for executor in executors for one in _below(executor)} - executors
    rest = set(_below(driver)) - executors - own

    def of(jvms: set[int], below: set[int]) -> tuple[float, float]:
        spent = [_cpu_seconds(jvm) for jvm in jvms]
        living = sum(sum(_cpu_seconds(one)) for one in below)
        return sum(itself for itself, _ in spent), living + sum(ended for _, ended in spent)

    executors_java, executors_python = of(executors, own)
    driver_java, driver_python = of({driver}, rest)
    return {
        "read, sketched and merged in executors' Python": executors_python,
        "shuffled and kept in executors' JVMs": executors_java,
        "in the driver's JVM": driver_java,
        "planning in the driver's Python": driver_python,
    }


def _cpu_seconds(process: int) -> tuple[float, float]:
    """What a process has used of a core, and what those below it have that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    own, ended = (sum(map(int, fields[at : at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13))
    return own, ended


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _below(process: int) -> Iterator[int]:
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [*map(int, listed.read_text().split())]
        except OSError:
            continue
        for child in children:
            yield child
            yield from _below(child)


if __name__ == "__main__":
    for row in main():
        print(row)

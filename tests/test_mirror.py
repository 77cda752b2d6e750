"""Tests mirror the folders: from a module's name follows where its proof lies.

- ``a/b.py`` is proved by ``tests/a/test_b.py``, or by several files that say of what:
  ``tests/a/test_b_restart.py``.
- A part whose name begins with its whole's, such as ``a/json_cells.py``, may be proved with the whole, by
  ``tests/a/test_json.py``.
- A folder that is one family of sketches or samples is proved through its class, by ``test_sketch.py``. What
  every family stands on (``core``) is proved by the laws in ``tests/laws``, which run on every family.
- `TOGETHER` names the parts that are proved through another module; ``tests/engines`` is about what Spark and
  the consumer must give alike, ``tests/faults`` about what no fault may change.

Modules of at most 60 lines may be proved by whatever uses them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "apps"]
SHORT = 60

TOGETHER = {
    "apps/app.py": "apps/running/test_replaying.py",
    "apps/ending.py": "apps/trending/test_demo.py",
    "apps/iot/app.py": "apps/running/test_replaying.py",
    "apps/iot/formats.py": "apps/running/test_replaying.py",
    "apps/supernova/example.py": "apps/demo/test_made.py",
    "apps/trending/example.py": "apps/demo/test_made.py",
    "apps/kafka/cluster.py": "operators/kafka/test_reader_leaders.py",
    "apps/kafka/node.py": "apps/kafka/test_broker.py",
    "apps/kafka/running.py": "apps/kafka/test_command.py",
    "apps/kafka/status.py": "apps/kafka/test_command.py",
    "apps/page/changes.py": "apps/page/test_routes.py",
    "apps/page/of_table.py": "apps/page/test_routes.py",
    "apps/page/served_app.py": "apps/page/test_routes.py",
    "apps/logs/columns.py": "apps/logs/test_syslog.py",
    "apps/logs/lines.py": "apps/logs/test_json_lines.py",
    "apps/logs/members.py": "apps/logs/test_json_lines.py",
    "apps/replay/command.py": "apps/topics/test_tail.py",
    "apps/replay/jetstream.py": "apps/replay/test_recorded.py",
    "apps/replay/load.py": "apps/replay/test_generated.py",
    "apps/replay/post.py": "apps/replay/test_recorded.py",
    "apps/replay/twitter_v1.py": "apps/replay/test_recorded.py",
    "apps/replay/twitter_v2.py": "apps/replay/test_recorded.py",
    "apps/replay/vocabulary.py": "apps/replay/test_generated.py",
    "apps/running/command.py": "apps/running/test_replaying.py",
    "apps/running/exact.py": "apps/running/test_replaying.py",
    "apps/running/local.py": "apps/running/test_replaying.py",
    "apps/running/outcome.py": "apps/running/test_replaying.py",
    "apps/running/spark.py": "apps/running/test_replaying.py",
    "apps/supernova/alerts.py": "apps/supernova/test_app.py",
    "apps/supernova/cuts/bts.py": "apps/supernova/test_app.py",
    "apps/supernova/cuts/cut.py": "apps/supernova/test_app.py",
    "apps/supernova/formats.py": "apps/supernova/test_app.py",
    "apps/supernova/packets/packet.py": "apps/supernova/packets/test_decoder.py",
    "apps/supernova/packets/schemas.py": "apps/supernova/packets/test_decoder.py",
    "apps/supernova/packets/ztf.py": "apps/supernova/packets/test_decoder.py",
    "apps/stocks/example.py": "apps/stocks/test_app.py",
    "apps/stocks/formats/alpaca.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/formats/binance.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/formats/captured.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/formats/coinbase.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/formats/frames.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/formats/headers.py": "apps/stocks/formats/test_table.py",
    "apps/stocks/formats/moments.py": "apps/stocks/formats/test_table.py",
    "apps/stocks/formats/polygon.py": "apps/stocks/formats/test_trades.py",
    "apps/stocks/rules/prices.py": "apps/stocks/rules/test_moves.py",
    "apps/stocks/rules/sessions.py": "apps/stocks/rules/test_moves.py",
    "apps/stocks/rules/splits.py": "apps/stocks/rules/test_moves.py",
    "apps/tables/asked.py": "apps/tables/test_query.py",
    "apps/topics/reading.py": "apps/topics/test_tail.py",
    "apps/trending/answers.py": "apps/trending/test_summary.py",
    "apps/trending/command.py": "apps/trending/test_demo.py",
    "apps/trending/engines.py": "apps/trending/test_demo.py",
    "apps/trending/kernels.py": "apps/trending/test_demo.py",
    "apps/trending/stream.py": "apps/trending/test_exact.py",
    "apps/trending/watch.py": "apps/trending/test_demo.py",
    "operators/consumer/beginning.py": "operators/consumer/test_runner.py",
    "operators/consumer/merge/held_parts.py": "operators/consumer/merge/test_count_windows.py",
    "operators/consumer/merge/parted_windows.py": "operators/consumer/merge/test_count_windows.py",
    "operators/consumer/merge/open_windows.py": "operators/consumer/merge/test_merger_windows.py",
    "operators/consumer/merge/paned_windows.py": "operators/consumer/merge/test_merger_windows.py",
    "operators/consumer/merge/session_windows.py": "operators/consumer/merge/test_merger_windows.py",
    "operators/consumer/merge/slices.py": "operators/consumer/merge/test_merger_windows.py",
    "operators/consumer/results.py": "operators/consumer/test_runner.py",
    "operators/consumer/run.py": "operators/consumer/test_runner.py",
    "operators/consumer/supervisor.py": "operators/consumer/test_runner.py",
    "operators/definition/asking.py": "laws/test_one_line.py",
    "operators/definition/checked.py": "operators/definition/test_stream.py",
    "operators/definition/deduplication.py": "operators/joins/test_once_each.py",
    "operators/definition/reading.py": "operators/definition/test_merged.py",
    "operators/definition/rows.py": "operators/definition/test_stream.py",
    "operators/definition/sources.py": "operators/definition/test_change.py",
    "operators/definition/steps.py": "operators/definition/test_stream.py",
    "operators/definition/tables.py": "operators/joins/test_joined.py",
    "operators/definition/tree.py": "operators/definition/test_row_wise.py",
    "operators/definition/windows.py": "operators/definition/test_stream.py",
    "operators/sketching/delta.py": "operators/consumer/log/test_messages.py",
    "operators/formats/field_paths.py": "operators/formats/test_avro.py",
    "operators/formats/lines.py": "operators/formats/test_csv.py",
    "operators/formats/memory.py": "operators/formats/test_json.py",
    "operators/formats/messages.py": "operators/formats/test_message_columns.py",
    "operators/formats/one_by_one.py": "operators/formats/test_avro.py",
    "operators/joins/frames.py": "operators/joins/test_contents.py",
    "operators/kafka/config.py": "operators/kafka/test_settings.py",
    "operators/kafka/faults.py": "operators/consumer/test_rights.py",
    "operators/kafka/plain.py": "operators/kafka/test_reader.py",
    "operators/kafka/read_ahead.py": "operators/kafka/test_reader.py",
    "operators/kafka/source.py": "operators/kafka/test_reader.py",
    "operators/kafka/topic_watch.py": "operators/consumer/group/test_history.py",
    "operators/rules/absence.py": "operators/rules/test_fold.py",
    "operators/rules/alert.py": "operators/rules/test_alerting.py",
    "operators/rules/baselines.py": "operators/rules/test_change.py",
    "operators/rules/figure.py": "operators/rules/test_fold.py",
    "operators/rules/limit.py": "operators/rules/test_fold.py",
    "operators/rules/rule.py": "operators/rules/test_fold.py",
    "operators/rules/switch.py": "operators/rules/test_fold.py",
    "operators/rules/threshold.py": "operators/rules/test_fold.py",
    "operators/rules/to_output.py": "operators/rules/test_alerting.py",
    "operators/rules/to_topic.py": "operators/rules/test_alerting.py",
    "operators/rules/to_webhook.py": "operators/rules/test_alerting.py",
    "operators/serving/reading.py": "operators/serving/test_following.py",
    "operators/serving/asked.py": "operators/serving/test_answers.py",
    "operators/serving/http/asking.py": "operators/serving/http/test_app.py",
    "operators/serving/http/documented.py": "operators/serving/http/test_app.py",
    "operators/serving/http/events.py": "operators/serving/http/test_live.py",
    "operators/serving/http/guard.py": "operators/serving/http/test_app.py",
    "operators/serving/http/problems.py": "operators/serving/http/test_app.py",
    "operators/serving/http/service.py": "operators/serving/http/test_app.py",
    "operators/serving/kept.py": "operators/serving/test_live.py",
    "operators/serving/recalling.py": "operators/serving/test_following.py",
    "operators/serving/rollups.py": "operators/serving/test_answers.py",
    "operators/serving/rows.py": "operators/serving/test_answers.py",
    "operators/serving/view.py": "operators/serving/test_live.py",
    "operators/sinks/to_kafka.py": "operators/sinks/test_sink.py",
    "operators/sinks/to_parquet.py": "operators/sinks/test_sink.py",
    "operators/sinks/to_table.py": "operators/sinks/test_sink.py",
    "operators/sketching/grouping.py": "operators/sketching/test_sketcher.py",
    "operators/sketching/panes.py": "operators/sketching/test_sketcher.py",
    "operators/sketching/progress.py": "operators/test_testing.py",
    "operators/table/spark_footer.py": "spark_udafs/test_tables.py",
    "operators/table/stored.py": "apps/tables/test_query.py",
    "operators/watching/figures.py": "operators/watching/test_metrics.py",
    "sampling/decayed_quantiles/sketch.py": "sampling/decayed_count/test_sketch.py",
    "sampling/hash_sample/groups.py": "sampling/bernoulli/test_sketch.py",
    "sketches/exact/extremes.py": "sketches/exact/test_groups.py",
    "sketches/exact/update.py": "sketches/exact/test_groups.py",
    "sketches/stored/classic_quantiles/images.py": "sketches/stored/test_package_quantiles.py",
    "sketches/stored/classic_quantiles/sketch.py": "sketches/stored/test_package_quantiles.py",
    "sketches/stored/req/images.py": "sketches/stored/test_package_quantiles.py",
    "sketches/stored/req/sketch.py": "sketches/stored/test_package_quantiles.py",
    "sketches/stored/tdigest/sketch.py": "sketches/stored/test_package_quantiles.py",
    "spark_udafs/functions/describing.py": "spark_udafs/functions/test_catalogue.py",
    "spark_udafs/functions/questions.py": "spark_udafs/functions/test_scalars.py",
    "spark_udafs/alert_sender.py": "spark_udafs/test_stale_watch.py",
    "spark_udafs/alerts.py": "apps/running/test_replaying.py",
    "spark_udafs/merge/forms.py": "spark_udafs/merge/test_plan.py",
    "spark_udafs/merge/partials.py": "spark_udafs/merge/test_plan.py",
}


def modules() -> list[str]:
    """The modules that are long enough to need a proof of their own."""
    paths = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    long = [path for path in paths if len(path.read_text().splitlines()) > SHORT]
    return sorted(str(path.relative_to(ROOT)) for path in long if path.name != "__init__.py")


def proofs(module: str) -> list[Path]:
    """The test files that prove a module."""
    path = Path(module)
    folder = TESTS / path.parent
    if path.parent.name == "core":
        folder, own = TESTS / "laws", list(folder.glob(f"test_{path.stem}*.py"))
        return own or sorted(folder.glob("test_*.py"))
    parts = path.stem.split("_")
    names = ["_".join(parts[:n]) for n in range(len(parts), 0, -1)]
    if (ROOT / path.parent / "sketch.py").exists():
        names.append("sketch")
    aspects = [
        proof
        for proof in folder.glob(f"test_{path.stem}_*.py")
        if not (ROOT / path.parent / proof.name.removeprefix("test_")).exists()
    ]
    found = [*aspects, *(folder / f"test_{name}.py" for name in names)]
    if module in TOGETHER:
        found.append(TESTS / TOGETHER[module])
    return [path for path in found if path.exists()]


@pytest.mark.parametrize("module", modules())
def test_a_module_has_its_proof_where_its_name_says(module: str) -> None:
    assert proofs(module)


def test_what_is_proved_together_could_not_be_proved_alone() -> None:
    for module, proof in TOGETHER.items():
        assert module in modules(), f"{module} is gone, or short by now; take it off the list"
        assert (TESTS / proof).exists(), f"{module}: there is no tests/{proof}"
        assert proofs(module) == [TESTS / proof], f"{module} has a proof of its own; take it off the list"


def test_a_test_file_is_named_after_what_it_proves() -> None:
    """Families' test files may be about anything of the family; a few prove what lies between modules."""
    free = [TESTS / "engines", TESTS / "faults", TESTS / "laws", TESTS]
    between = {"operators/consumer/test_rights.py", "sketches/stored/test_broken.py"}
    wrong = []
    for path in TESTS.rglob("test_*.py"):
        room = ROOT / path.parent.relative_to(TESTS)
        parts = path.stem.removeprefix("test_").split("_")
        names = ["_".join(parts[:n]) for n in range(1, len(parts) + 1)]
        named = any((room / f"{name}.py").exists() for name in names)
        known = str(path.relative_to(TESTS)) in between or path.name == "test_java.py"
        if not (named or known or path.parent in free or (room / "sketch.py").exists()):
            wrong.append(str(path.relative_to(TESTS)))
    assert wrong == []


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_file_can_be_seen_at_once(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400

"""What the app reports of logs: a recorded day's totals, and events put into one, on both engines."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.apps.running.report import AppReport

from .reading import alerts_of, job_of

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SET = {"least": "10", "learn": "2h", "terms": "agent", "silence": "30m", "slow": "2"}
PART_OF = {
    "errors": "traffic",
    "spike": "traffic",
    "silence": "traffic",
    "slow": "traffic",
    "brute force": "logins",
    "new term": "terms",
}


def requests(seed: int = 5) -> list[tuple[datetime, str, int, str, float]]:
    """Half a day: errors from 3:02, silence from 5:00, many requests from 8:00, guesses at 9:00, a new agent
    at 10:00, slowness from 11:00."""
    dice = random.Random(seed)
    result, second = [], 0.0
    while second < 12 * 3600:
        second += dice.expovariate(1 / (2 if 8 <= second / 3600 < 8.4 else 12))
        hour = second / 3600
        if 5 <= hour < 6.1:
            continue
        failed = dice.random() < (0.5 if 3.03 < hour < 3.3 else 0.01)
        agent = "scanner/1" if 10 < hour < 10.01 else dice.choice(["curl/8", "Mozilla/5.0"])
        elapsed = round(dice.random() * (8 if hour > 11 else 0.5), 3)
        address = f"192.0.2.{dice.randrange(250)}"
        result.append(
            (MIDNIGHT + timedelta(seconds=int(second)), address, 503 if failed else 200, agent, elapsed)
        )
    guesses = [MIDNIGHT + timedelta(hours=9, seconds=50 * n) for n in range(9)]
    return sorted([*result, *((at, "198.51.100.7", 401, "curl/8", 0.01) for at in guesses)])


def line(at: datetime, address: str, status: int, agent: str, secs: float) -> str:
    return (
        f'{address} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /a?b HTTP/1.1" {status} 17 "-" "{agent}" {secs}'
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "access.log"
    path.write_text("\n".join(line(*one) for one in requests()) + "\nrestarted\n")
    return path


def windows(minutes: int) -> dict[datetime, list[tuple[datetime, str, int, str, float]]]:
    by_key: dict[datetime, list[Any]] = {}
    for one in requests():
        start = MIDNIGHT + (one[0] - MIDNIGHT) // timedelta(minutes=minutes) * timedelta(minutes=minutes)
        by_key.setdefault(start, []).append(one)
    return by_key


def plain() -> dict[str, list[datetime]]:
    """When errors, silence, guesses and news begin, by a look at all requests of a window."""
    by_5 = windows(5)
    ends = [start + timedelta(minutes=5) for start in by_5]
    shares = {
        start + timedelta(minutes=5): sum(status == 503 for _, _, status, _, _ in some) / len(some)
        for start, some in by_5.items()
        if len(some) >= 10
    }
    errors, on = [], False
    for end, share in shares.items():
        if not on and share > 0.05:
            errors.append(end)
        on = share > 0.05 or (on and share > 0.025)
    silence = [
        end + timedelta(minutes=30)
        for end, start in zip(ends, list(by_5)[1:])
        if start - end > timedelta(minutes=30)
    ]
    refused = [at for at, _, status, _, _ in requests() if status == 401]
    ten = timedelta(minutes=10)
    guessed = next(end for end in refused if sum(end - ten < at <= end for at in refused) >= 5)
    new = next(start for start, some in by_5.items() if any(one[3] == "scanner/1" for one in some))
    return {
        "errors": errors,
        "silence": silence,
        "brute force": [guessed],
        "new term": [new + timedelta(minutes=5)],
    }


def test_what_happened_is_reported_with_its_time(recording: Path) -> None:
    by_key: dict[str, list[datetime]] = {}
    for part in dict.fromkeys(PART_OF.values()):
        account, alerts, _ = alerts_of(recording, part, SET)
        assert (account.read, account.dead_lettered, account.late) == (len(requests()) + 1, 1, 0)
        for alert in alerts:
            assert PART_OF[alert.rule] == part
            if alert.state == "fired":
                by_key.setdefault(alert.rule, []).append(datetime.fromtimestamp(alert.at_us / 1e6, UTC))
    spikes, slow = by_key.pop("spike"), by_key.pop("slow")
    assert by_key == plain()
    assert [(at.hour, at.minute) for at in (*spikes, *slow)] == [(8, 10), (11, 10)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ratio": "high"}, "--set ratio must be a number, got high"),
        ({"silence": "long"}, "the rule 'silence': longer: 'long' is not a duration"),
        ({"learn": "0s"}, "the rule 'new term': learn must be a duration such as '1d', got '0s'"),
        (
            {"path": "x"},
            "logs has no such setting; with the format access it has errors, ratio, least, spike",
        ),
    ],
)
def test_wrong_settings_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Job.of(APP, "access", given)
    assert said in str(refused.value)


def result_of(kafka: Any, job: Job, path: Path, engine: str = "local") -> dict[str, Any]:
    console = Console(file=io.StringIO())
    return replayed(AppReplay(job, [path], engine), kafka.bootstrap_servers, console)


@pytest.mark.kafka
def test_the_recorded_server_s_totals(kafka: Any, recordings: Path) -> None:
    path = recordings / "logs" / "apache_combined_10k.log"
    whole = [one for one in path.read_text().splitlines() if re.search(r'" "[^"]*"$', one)]
    statuses = Counter(re.findall(r'" (\d{3}) ', one)[0] for one in whole)
    result = result_of(kafka, job_of(path), path)
    account = {"read": 10_000, "counted": 9_999, "filtered": 0, "late": 0, "dead_lettered": 1}
    assert result["format"] == "access" and result["account"] == account
    assert len(whole) == 9_999 and result["all_inside_bounds"]
    (total,) = result["answers"]["total"]
    assert (total["visitors"]["exact"], total["records"], total["failures"]) == (1_753, 9_999, 3)
    assert len({one.split()[0] for one in whole}) == 1_753
    assert {one["item"]: one["exact"] for one in total["statuses"]} == statuses
    assert (statuses["404"], statuses["200"], statuses["500"]) == (213, 9_125, 3)
    assert {alert["rule"] for alert in result["alerts"]} == {"new term"}
    shown = io.StringIO()
    Console(file=shown, width=150).print(AppReport(APP, result))
    assert "9,999 counted" in shown.getvalue() and "Every estimate" in shown.getvalue()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_both_engines_report_the_same(kafka: Any, spark: Any, recording: Path) -> None:
    pytest.importorskip("pyspark")
    # Windows, rules and estimates of every kind are in these two; a query of Spark's costs seconds.
    few = tuple(part for part in APP.parts if part.name in ("traffic", "logins"))
    job = Job.of(replace(APP, parts=few, panels=()), None, SET, recording=recording)
    local, other = (result_of(kafka, job, recording, engine) for engine in ("local", "spark"))
    assert {**other, "engine": "local"} == local
    fired = {alert["rule"] for alert in local["alerts"]}
    assert fired == {rule for rule, part in PART_OF.items() if part != "terms"}

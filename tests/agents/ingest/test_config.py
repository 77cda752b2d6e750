"""Configurations: what they mean, and errors that name the line and the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.agents.ingest.agent_plan import AgentPlan
from streamgauge.agents.ingest.channels.memory import MemoryBuffer
from streamgauge.agents.ingest.config import parse_config, read_config
from streamgauge.agents.ingest.document import ConfigError
from streamgauge.agents.ingest.interceptors.filter import Filter
from streamgauge.agents.ingest.interceptors.headers import Host
from streamgauge.agents.ingest.sinks.console import Console
from streamgauge.agents.ingest.sinks.kafka import KafkaTopic
from streamgauge.agents.ingest.sources.lines import Multiline
from streamgauge.agents.ingest.sources.tail import FileTail

from ...cases import each

WHOLE = """
name = "web-1"
folder = "/var/lib/agent"

[sources.access]
type = "tail"
files = ["/var/log/nginx/access.log*"]
sink = "kafka"
multiline = { start = '^\\d' }

[[sources.access.interceptors]]
type = "host"

[[sources.access.interceptors]]
type = "filter"
regex = "health"
exclude = true

[sources.numbers]
type = "sequence"
channel = "between"

[channels.between]
type = "memory"
capacity = 10
sink = "screen"

[sinks.kafka]
type = "kafka"
topic = "access"
config = { "linger.ms" = 5 }

[sinks.screen]
type = "console"
"""


def parsed(text: str) -> AgentPlan:
    return parse_config(text, "agent.toml", "default", Path("state"))


def test_all_that_there_is() -> None:
    plan = parsed(WHOLE)
    assert (plan.name, plan.folder) == ("web-1", Path("/var/lib/agent"))
    access = plan.routes["access"]
    assert access.source == FileTail(files=["/var/log/nginx/access.log*"], multiline=Multiline(start=r"^\d"))
    assert list(access.interceptors) == [Host(), Filter(regex="health", exclude=True)]
    assert (access.channel, access.sink) == (None, "kafka")
    assert (plan.routes["numbers"].channel, plan.routes["numbers"].sink) == ("between", None)
    assert plan.channels == {"between": MemoryBuffer(capacity=10)} and plan.channel_sinks == {
        "between": "screen"
    }
    assert plan.sinks == {"kafka": KafkaTopic(topic="access", config={"linger.ms": 5}), "screen": Console()}


def test_one_sink_needs_no_mention() -> None:
    plan = parsed('[sources.a]\ntype = "stdin"\n[sinks.b]\ntype = "console"')
    assert plan.routes["a"].sink == "b" and plan.name == "default" and plan.folder == Path("state")


@each(
    ("change", "text"),
    [
        (("[sinks.kafka]", "[sinks.kafka"), r"not TOML: .*line 28"),
        (
            ('files = ["/var', 'fils = ["/var'),
            r"line 7: sources.access: unknown field 'fils'; did you mean 'files'",
        ),
        (
            ('["/var/log/nginx/access.log*"]', '"a.log"'),
            r"line 7: sources.access: files: Expected `array`, got `str`",
        ),
        (
            ("start = '^\\d'", "start = '('"),
            r"line 9: sources.access: .*start must be a regular expression",
        ),
        (("regex = ", "regexp = "), r"line 16: sources.access.interceptors.1: unknown field 'regexp'"),
        (
            ('type = "filter"', 'type = "fitler"'),
            r"line 15: sources.access.interceptors.1: type must be one of",
        ),
        (('regex = "health"', 'regex = "("'), r"line 16: sources.access.interceptors.1: regex must be"),
        (
            ("capacity = 10", "capacity = 0"),
            r"line 25: channels.between: capacity must be an integer ≥ 1, got 0",
        ),
        (
            ('channel = "between"', 'channel = "other"'),
            r"line 21: channel must be one of this file's channels \(between\)",
        ),
        (('channel = "between"', ""), r"line 19: sink is missing; write one of kafka, screen"),
        (('sink = "screen"', 'sink = "scren"'), r"line 26: sink must be one of kafka, screen, got 'scren'"),
        (('topic = "access"', ""), r"line 28: sinks.kafka: topic is missing"),
        (('"linger.ms" = 5', '"lingr.ms" = 5'), r"line 31: sinks.kafka: .*lingr.ms.*did you mean"),
        (('name = "web-1"', "name = 1"), r"line 2: name must be a string that isn't empty, got 1"),
        (('name = "web-1"', 'nam = "web-1"'), r"line 2: unknown field 'nam'; the fields are name, folder"),
        (('type = "console"', ""), r"line 33: sinks.screen: type is missing"),
        (('type = "console"', 'type = ["a"]'), r"line 34: sinks.screen: "),
    ],
)
def test_errors_name_the_line_and_the_field(change: tuple[str, str], text: str) -> None:
    before, after = change
    assert before in WHOLE
    with pytest.raises(ConfigError, match=rf"^agent.toml.*{text}"):
        parsed(WHOLE.replace(before, after, 1))


@pytest.mark.parametrize("text", ["", "[sources.a]\ntype = 'stdin'", "sources = 1", "[sinks]\nkafka = 1"])
def test_what_is_no_agent_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^agent.toml"):
        parsed(text)


def test_files_are_read_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="must be UTF-8 text"):
        read_config(tmp_path / "a.toml", "n", tmp_path)

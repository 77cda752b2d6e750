"""Commands of an app's rules by --set, and what a run says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.rules.outlets.to_command import (
    CommandProgram,
    CommandTopic,
    listed_commands,
)
from streamgauge.rules import Alert

BAN = {
    "command.brute force": "nft add element inet filter banned '{ $key timeout 1h }'",
    "cleared.brute force": "nft delete element inet filter banned '{ $key }'",
}
FIRED = Alert("brute force", "logins", "fired", ("192.0.2.1",), 0, 0, 5.0, 5.0, 5.0, 5.0, "5 refused")


def alerting_of(job: Job) -> Alerting:
    part = next(one for one in job.parts if one.name == "logins")
    result = job.alerting(part, [])
    assert result is not None
    return result


def test_a_setting_gives_a_rule_its_command() -> None:
    job = Job.of(APP, "syslog", {**BAN, "command.silence": "topic:quiet"})
    (program,) = alerting_of(job).outlets
    assert isinstance(program, CommandProgram) and program.program == "nft"
    (rule,) = job.rules["logins"]
    (listed,) = listed_commands([rule], FIRED)
    assert listed["content"] == ["add", "element", "inet", "filter", "banned", "{ 192.0.2.1 timeout 1h }"]
    assert (listed["to"], listed["name"], listed["state"]) == ("run", "nft", "fired")
    silence = next(one for one in job.rules["traffic"] if one.name == "silence")
    assert [command.destination for command in silence.commands] == [("topic", "quiet")]


def test_a_dry_run_lists_commands_and_carries_none_out() -> None:
    job = replace(Job.of(APP, "syslog", BAN), acts=False)
    assert alerting_of(job).outlets == ()
    assert list(listed_commands(job.rules["logins"], FIRED))


def test_one_topic_takes_the_commands_of_several_rules() -> None:
    job = Job.of(APP, "syslog", {"command.errors": "topic:ops", "command.silence": "topic:ops"})
    part = next(one for one in job.parts if one.name == "traffic")
    alerting = job.alerting(part, [])
    assert alerting is not None
    (topic,) = alerting.outlets
    assert isinstance(topic, CommandTopic) and set(topic.by_rule) == {"errors", "silence"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command.nope": "true"}, "--set command.nope: unknown rule; the rules are errors, spike"),
        ({"command.errors": ""}, "--set command.errors: a command goes to one of"),
        ({"command.errors": "a $nope"}, r"--set command.errors: .*nope is not known"),
        ({"command.errors": "a x", "cleared.errors": "b y"}, "the same program must run"),
    ],
)
def test_what_is_no_command_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Job.of(APP, "syslog", given)

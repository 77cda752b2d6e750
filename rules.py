"""Rules over closed windows, the alerts that they raise, outlets for alerts, and your own rules.

    import streamgauge as sg

    busy = sg.rules.Threshold("busy", value="requests", above=1_000, hold="3m")
    alerting = sg.rules.Alerting([busy], to=[sg.rules.AlertsToKafka("alerts")])
    by_host.start(group_id="hosts", sinks=[alerting])

| for | names |
|---|---|
| limits of answers | `Threshold`, `Ratio`, `RollingSum`, `Change`, `Unusual`, `Beyond`, `StaLta`, `Slope` |
| new terms, bursts and silence | `NewTerm`, `Burst`, `Absence`, `Flatline` |
| counters, and wrong clocks | `Rate`, `ClockOffset` |
| applying them | `Alerting`, a sink of a run; `read_rules` reads them from TOML |
| outlets | `AlertsToConsole`, `AlertsToFile`, `AlertsToKafka`, `AlertsToWebhook`, `CommandsToKafka` |
| outlets for people | `AlertsToAlertmanager`, `AlertsToSlack`, `AlertsToMattermost`, `AlertsToEmail` |
| | `AlertsToNtfy`, `AlertsToMqtt`, `AlertsToApprise`; `read_outlets` reads them from TOML |
| | `AlertSilence` suppresses alerts |
| reactions | `Command`: a topic, a web address, MQTT or a program, as any rule's `command` |
| your own rules | a subclass of `LimitRule`, which returns a `Measured`, or of `Rule` |
"""

from .operators.rules.alert import Alert
from .operators.rules.alerting import Alerting
from .operators.rules.command import Command
from .operators.rules.kinds.absence import Absence, Flatline
from .operators.rules.kinds.beyond import Beyond
from .operators.rules.kinds.burst import Burst
from .operators.rules.kinds.change import Change
from .operators.rules.kinds.clock_offset import ClockOffset
from .operators.rules.kinds.new_term import NewTerm
from .operators.rules.kinds.rate import Rate
from .operators.rules.kinds.rolling_sum import RollingSum
from .operators.rules.kinds.slope import Slope
from .operators.rules.kinds.sta_lta import StaLta
from .operators.rules.kinds.threshold import Ratio, Threshold
from .operators.rules.kinds.unusual import Unusual
from .operators.rules.outlets.alertmanager import AlertsToAlertmanager
from .operators.rules.outlets.apprise import AlertsToApprise
from .operators.rules.outlets.mail import AlertsToEmail
from .operators.rules.outlets.mqtt import AlertsToMqtt
from .operators.rules.outlets.ntfy import AlertsToNtfy
from .operators.rules.outlets.silences import AlertSilence
from .operators.rules.outlets.slack import AlertsToMattermost, AlertsToSlack
from .operators.rules.outlets.to_output import AlertsToConsole, AlertsToFile
from .operators.rules.outlets.to_topic import AlertsToKafka, CommandsToKafka
from .operators.rules.outlets.toml_outlets import read_outlets
from .operators.rules.outlets.webhook import AlertsToWebhook
from .operators.rules.row import Row
from .operators.rules.rule import LimitRule, Measured, Rule
from .operators.rules.toml_rules import read_rules
from .operators.rules.value_with_bounds import Figure

__all__ = [
    "Absence",
    "Alert",
    "AlertSilence",
    "Alerting",
    "AlertsToAlertmanager",
    "AlertsToApprise",
    "AlertsToConsole",
    "AlertsToEmail",
    "AlertsToFile",
    "AlertsToKafka",
    "AlertsToMattermost",
    "AlertsToMqtt",
    "AlertsToNtfy",
    "AlertsToSlack",
    "AlertsToWebhook",
    "Beyond",
    "Burst",
    "Change",
    "ClockOffset",
    "Command",
    "CommandsToKafka",
    "Figure",
    "Flatline",
    "LimitRule",
    "Measured",
    "NewTerm",
    "Rate",
    "Ratio",
    "RollingSum",
    "Row",
    "Rule",
    "Slope",
    "StaLta",
    "Threshold",
    "Unusual",
    "read_outlets",
    "read_rules",
]

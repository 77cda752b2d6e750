"""Decoders in the definition: with all their parameters, or refused with what to write."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages


class Lines:
    schema = {"n": pl.Int64}  # noqa: RUF012

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def decode(self, messages: Messages) -> Decoded:
        raise NotImplementedError

    @cached_property
    def compiled(self) -> object:
        return object()


@dataclass(frozen=True)
class Table(Lines):
    separator: str = ";"
    types: dict[str, Any] = field(default_factory=lambda: {"at": pl.Datetime("us")})
    version = 3


class Described(Lines):
    def definition(self) -> dict[str, Any]:
        return {"version": 2, "separator": ","}


def test_attributes_are_parameters() -> None:
    given = Lines(_pattern=re.compile("a+"), names=("a", "b"), skip={2, 1}, magic=b"ab", limit=None)
    assert decoder_definition(given) == {
        "decoder": "Lines",
        "_pattern": {"pattern": "a+", "flags": 32},
        "names": ["a", "b"],
        "skip": [1, 2],
        "magic": "6162",
        "limit": None,
    }


def test_fields_of_a_dataclass_and_its_version_are_parameters() -> None:
    reported = {"decoder": "Table", "version": 3, "separator": ",", "types": {"at": "datetime[us]"}}
    assert decoder_definition(Table(",")) == reported


def test_what_is_only_computed_once_is_none() -> None:
    lines = Lines()
    assert lines.compiled is lines.compiled
    assert decoder_definition(lines) == {"decoder": "Lines"}


def test_a_decoder_may_describe_itself() -> None:
    assert decoder_definition(Described(lock=threading.Lock())) == {
        "decoder": "Described",
        "version": 2,
        "separator": ",",
    }


def test_a_function_is_identified_by_what_it_does() -> None:
    one, same, other = (
        Lines(key=function) for function in (lambda n: n + 1, lambda n: n + 1, lambda n: n + 2)
    )
    assert decoder_definition(one) == decoder_definition(same) != decoder_definition(other)


def test_what_cannot_be_written_down_is_refused_with_what_to_write() -> None:
    reported = r"the decoder Lines has a lock as its \'guard\', which can't be stored .* definition\(\)"
    with pytest.raises(TypeError, match=reported):
        Stream.from_kafka("lines", value=Lines(guard=threading.Lock()))


def test_another_parameter_or_version_is_a_changed_definition() -> None:
    one, two = (
        Stream.from_kafka("lines", value=decoder).tumbling("1m").agg(n=count())
        for decoder in (Table(","), Table(";"))
    )
    assert one.fingerprint() != two.fingerprint()
    (reported,) = differences(one.definition(), two.definition())
    assert reported.startswith('the decoder changed from Table(version=3, separator=","')

"""Types for your own formats: decoders of messages, and encoders of rows.

    import streamgauge as sg

    class Prices:                                   # a `Decoder`: lines such as ACME;9.75
        schema = {"symbol": pl.String, "price": pl.Float64}

        def decode(self, messages: sg.formats.Messages) -> sg.formats.Decoded: ...

    prices = sg.Stream.from_kafka("prices", value=Prices())

| for | names |
|---|---|
| reading | `Decoder`: `Messages` in, rows and refusals out as `Decoded`, each refusal with a `Reason` |
| an unreachable service | `Unavailable`, raised by `decode`: no message is to blame |
| writing | `Encoder`: rows in, the values of messages out |

The built-in formats are in the package itself: `json`, `csv`, `avro`, `protobuf`, `text`, `raw`,
`syslog` and `access_log`; rows are written by `as_json`, `as_avro` and `as_bytes`.
"""

from .operators.formats.decode import Decoded, Decoder
from .operators.formats.encode import Encoder
from .operators.formats.messages import Messages
from .operators.formats.reasons import Reason
from .operators.formats.retryable_error import Unavailable

__all__ = ["Decoded", "Decoder", "Encoder", "Messages", "Reason", "Unavailable"]

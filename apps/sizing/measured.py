"""The costs of messages, rows of deltas and aggregates: constants printed by `python -m bench.sizing`."""

from __future__ import annotations

SOURCE = "Intel(R) Xeon(R) Processor, 2 cores, busy with other work"
MESSAGE_BYTES = 69
"""The size of the messages for which `READ` and `DECODE` were measured."""
READ = 2.23e-07
"""Seconds of CPU time for reading a message from Kafka, lz4."""
READ_BYTE = 8.36e-10
"""The same, for each further byte."""
DECODE = 2.88e-07
"""Decoding a JSON message with five fields."""
DECODE_BYTE = 4.77e-10
"""The same, for each further byte in fields that the stream doesn't use."""
MERGE_DELTA = 0.000216
"""Merging a delta without rows."""
PROCESS_BYTES = 419_057_664
"""Peak memory of a process that reads, sketches and merges one group."""
FEW = 20
"""Messages of each row for the first five numbers of an aggregate."""

AGGREGATES: dict[str, tuple[float, ...]] = {
    "": (
        *(2.05e-07, 2.44, 2.05e-07, 4.65e-07, 4.82e-07),
        *(1.17e-07, 60.0, 6.63e-06, 1.45e-05, 6.32e-05),
    ),
    "count": (
        *(0.0, 0.902, 3.98e-08, 1.16e-08, 1.78e-07),
        *(0.0, 17.2, 1.28e-05, 3.72e-05, 4.47e-05),
    ),
    "sum": (
        *(2.21e-08, 3.46, 8.92e-08, 1.79e-07, 5.5e-07),
        *(0.0, 21.2, 9.41e-06, 3.88e-05, 4e-05),
    ),
    "mean": (
        *(9.01e-09, 4.33, 8.29e-08, 4.43e-07, 7.09e-07),
        *(0.0, 34.8, 1.3e-05, 6.47e-05, 6.63e-05),
    ),
    "min": (
        *(5.55e-08, 2.49, 1.19e-07, 2.22e-07, 6.52e-07),
        *(0.0, 20.0, 7e-06, 4.56e-05, 4.38e-05),
    ),
    "max": (
        *(2.73e-08, 3.42, 6.54e-08, 1.78e-07, 3.08e-07),
        *(0.0, 20.4, 8.19e-06, 2.88e-05, 2.16e-05),
    ),
    "variance": (
        *(8.49e-08, 15.6, 1.96e-07, 2.96e-07, 6.64e-07),
        *(5.52e-09, 49.6, 1.6e-05, 7.12e-05, 7.04e-05),
    ),
    "first": (
        *(1.17e-07, 6.55, 1.95e-07, 9.26e-07, 1.11e-06),
        *(7.88e-08, 48.0, 4.05e-05, 0.000152, 0.000159),
    ),
    "last": (
        *(1.75e-07, 6.53, 2.04e-07, 3.66e-08, 7.41e-07),
        *(1.09e-07, 47.6, 7.79e-06, 5.79e-05, 4.29e-05),
    ),
    "distinct": (
        *(1.1e-07, 100.0, 1.17e-06, 1.23e-06, 1.58e-06),
        *(2.65e-08, 1670.0, 3.64e-05, 4.98e-05, 5.08e-05),
    ),
    "distinct_set": (
        *(1.75e-07, 166.0, 9.2e-07, 9.55e-07, 3.25e-06),
        *(7.01e-08, 32800.0, 6.71e-05, 0.000132, 0.000517),
    ),
    "quantiles": (
        *(1.79e-07, 48.3, 2.74e-06, 3.1e-06, 9.88e-06),
        *(4.6e-09, 454.0, 2.78e-05, 6e-05, 4.4e-05),
    ),
    "kll_quantiles": (
        *(1.27e-07, 78.4, 1.06e-06, 2.47e-06, 4.77e-06),
        *(3.83e-08, 1650.0, 4.02e-05, 5.93e-05, 0.000155),
    ),
    "tdigest_quantiles": (
        *(1.34e-07, 91.2, 2.21e-06, 5.73e-06, 5.07e-06),
        *(5.65e-08, 1720.0, 5.87e-05, 0.000123, 0.000168),
    ),
    "top_k": (
        *(3.97e-07, 38.7, 1.38e-06, 3.9e-06, 1.05e-05),
        *(1.48e-07, 2690.0, 0.000102, 0.000251, 0.000779),
    ),
    "sample": (
        *(3.27e-07, 236.0, 2.53e-06, 7.11e-06, 9.55e-06),
        *(4.81e-08, 1130.0, 1.39e-05, 0.000213, 0.000162),
    ),
    "frequency": (
        *(6.68e-07, 156.0, 1.02e-06, 2.12e-06, 9.27e-06),
        *(1.76e-07, 5420.0, 0.000143, 0.00021, 0.00038),
    ),
    "membership": (
        *(1.13e-05, 389.0, 3.7e-05, 0.000141, 0.000644),
        *(6.18e-08, 54600.0, 0.00103, 0.000458, 0.000733),
    ),
}
"""By aggregate, for rows with 20 and then with 10,000 messages each: CPU seconds to sketch a message; the
row's
bytes on the table topic; seconds to encode, merge and close it. "" is a row with only a count, to whose costs
the others are added.
"""

"""The costs of messages, rows of deltas and aggregates: constants printed by `python -m bench.sizing`."""

from __future__ import annotations

SOURCE = "AMD EPYC, 2 cores"
MESSAGE_BYTES = 69
"""The size of the messages for which `READ` and `DECODE` were measured."""
READ = 1.53e-07
"""Seconds of CPU time for reading a message from Kafka, lz4."""
READ_BYTE = 6.61e-10
"""The same, for each further byte."""
DECODE = 1.32e-07
"""Decoding a JSON message with five fields."""
DECODE_BYTE = 9.34e-11
"""The same, for each further byte in fields that the stream doesn't use."""
MERGE_DELTA = 0.000141
"""Merging a delta without rows."""
PROCESS_BYTES = 623_906_816
"""Peak memory of a process that reads, sketches and merges one group."""
FEW = 20
"""Messages of each row for the first five numbers of an aggregate."""

AGGREGATES: dict[str, tuple[float, ...]] = {
    "": (
        *(8.66e-08, 7.33, 7.25e-08, 2.19e-07, 2.71e-07),
        *(6.23e-08, 64.0, 6.79e-06, 2.27e-05, 3.17e-05),
    ),
    "distinct": (
        *(7.18e-08, 118.0, 3.74e-07, 5.74e-07, 7.48e-07),
        *(3.04e-08, 3010.0, 1.26e-05, 1.47e-05, 4.92e-05),
    ),
    "distinct_set": (
        *(9.21e-08, 171.0, 2.56e-07, 5.94e-07, 1.47e-06),
        *(4.98e-08, 32800.0, 1.56e-05, 7.24e-05, 0.00027),
    ),
    "quantiles": (
        *(8.86e-08, 108.0, 5.54e-07, 1.63e-06, 6.12e-06),
        *(1.44e-08, 969.0, 4.27e-06, 2.09e-05, 8.53e-05),
    ),
    "kll_quantiles": (
        *(5.23e-08, 110.0, 4.98e-07, 9.68e-07, 2.02e-06),
        *(2.6e-08, 2380.0, 1.04e-05, 1.8e-05, 9.27e-05),
    ),
    "tail_quantiles": (
        *(7.18e-08, 86.4, 3.07e-07, 1e-06, 2.4e-06),
        *(4.06e-08, 3260.0, 7.66e-06, 2.97e-05, 0.000121),
    ),
    "tdigest_quantiles": (
        *(1.07e-07, 151.0, 7.56e-07, 2.87e-06, 2.32e-06),
        *(4.74e-08, 2000.0, 9.85e-06, 3.68e-05, 6.43e-05),
    ),
    "top_k": (
        *(2.71e-07, 66.0, 3.38e-07, 1.85e-06, 6.03e-06),
        *(1.18e-07, 6240.0, 3.19e-05, 0.00019, 0.000489),
    ),
    "sample": (
        *(2.59e-07, 264.0, 8.56e-07, 3.5e-06, 5.29e-06),
        *(4.32e-08, 1270.0, 9.11e-06, 5.92e-05, 0.000142),
    ),
    "frequency": (
        *(4.08e-07, 237.0, 6.74e-07, 2.3e-06, 7.9e-06),
        *(1.19e-07, 9100.0, 5e-05, 0.000104, 0.000188),
    ),
    "membership": (
        *(1.28e-05, 1020.0, 1.78e-05, 6.58e-05, 0.000243),
        *(5.57e-08, 93900.0, 0.000398, 0.000141, 0.000403),
    ),
    "sliding_distinct": (
        *(2.02e-06, 163.0, 6.3e-07, 6.9e-05, 0.00011),
        *(2.52e-07, 36800.0, 8.69e-05, 0.000424, 0.0017),
    ),
    "sliding_membership": (
        *(3.86e-06, 700.0, 1.18e-06, 0.000302, 0.00455),
        *(5.57e-07, 340000.0, 0.000398, 0.0011, 0.00552),
    ),
    "weighted_sample": (
        *(1.97e-07, 289.0, 9.4e-07, 3.91e-06, 0.00118),
        *(3.97e-08, 1340.0, 4.6e-06, 4.6e-05, 0.00149),
    ),
    "decayed_sample": (
        *(2.12e-07, 285.0, 8.95e-07, 3.31e-06, 0.00118),
        *(4.29e-08, 1200.0, 7.12e-06, 0.000136, 0.00162),
    ),
    "decayed_count": (
        *(1.47e-07, 16.1, 6.88e-08, 1.02e-05, 0.00196),
        *(4.38e-08, 36.4, 1.5e-06, 2.23e-05, 0.00042),
    ),
    "decayed_quantiles": (
        *(1.64e-05, 129.0, 5.63e-07, 0.000151, 0.000605),
        *(2.47e-07, 2580.0, 9.29e-06, 0.000223, 0.000741),
    ),
    "recent_sample": (
        *(8.74e-07, 352.0, 1.24e-06, 1.43e-05, 0.00182),
        *(3.09e-07, 7160.0, 2.93e-05, 0.000375, 0.00335),
    ),
    "stratified_sample": (
        *(6.86e-06, 680.0, 4.04e-06, 0.000103, 0.00652),
        *(3.36e-07, 83200.0, 0.000231, 0.00145, 0.0413),
    ),
    "bernoulli_sample": (
        *(7.43e-08, 37.4, 1.34e-07, 8.17e-07, 0.00103),
        *(1.57e-08, 1300.0, 2.06e-06, 4.16e-05, 0.0014),
    ),
    "hash_sample": (
        *(7.88e-08, 30.4, 1.16e-07, 6.13e-07, 0.00102),
        *(3.38e-08, 611.0, 5.51e-07, 4.43e-05, 0.0013),
    ),
    "count": (
        *(1.9e-08, 2.94, 9e-09, 6.46e-08, 1.45e-07),
        *(4.34e-09, 18.0, 0.0, 5.77e-06, 1.1e-05),
    ),
    "sum": (
        *(2.31e-08, 4.59, 1.35e-08, 3.48e-08, 1.77e-07),
        *(6.33e-09, 21.6, 0.0, 4.25e-06, 2.16e-05),
    ),
    "mean": (
        *(2.95e-08, 7.5, 6.23e-08, 1.96e-07, 3.17e-07),
        *(6.04e-09, 36.0, 0.0, 1.3e-05, 2.78e-05),
    ),
    "min": (
        *(1.89e-08, 3.63, 1.27e-08, 6.16e-08, 1.43e-07),
        *(9.43e-09, 20.4, 0.0, 4.33e-06, 1.6e-05),
    ),
    "max": (
        *(2.26e-08, 4.59, 2.14e-08, 4.45e-08, 1.46e-07),
        *(7.51e-09, 20.8, 0.0, 2.11e-06, 1.54e-05),
    ),
    "first": (
        *(6.5e-08, 11.4, 4.75e-08, 2.77e-07, 4.11e-07),
        *(3.85e-08, 50.8, 4.08e-07, 2.49e-05, 4.27e-05),
    ),
    "last": (
        *(6.85e-08, 11.4, 4.72e-08, 2.66e-07, 3.88e-07),
        *(4.21e-08, 50.8, 2.81e-07, 3.67e-05, 5.56e-05),
    ),
    "variance": (
        *(3.48e-08, 18.2, 6.39e-08, 2.4e-07, 4.44e-07),
        *(1.22e-08, 50.4, 4.01e-07, 1.96e-05, 3.73e-05),
    ),
}
"""By aggregate, for rows with 20 and then with 10,000 messages each: CPU seconds to sketch a message; the
row's
bytes on the table topic; seconds to encode, merge and close it. "" is a row with only a count, to whose costs
the others are added.
"""

"""Sketches and aggregates of families that exist to read, query and merge stored sketches.

    import streamgauge as sg

    visits = sg.stored.CPC.from_bytes(what_druid_wrote)
    stream.agg(users=sg.stored.cpc("user"))         # for tables that are merged with such sketches

| question | sketch | aggregate | for a new table |
|---|---|---|---|
| distinct values | `CPC` | `cpc` | `distinct` |
| distinct values with totals | `Tuple` | `tuple` | `distinct_set` |
| distribution | `ClassicQuantiles` | `classic_quantiles` | `kll_quantiles` |
| sample | `VarOpt` | `var_opt` | `weighted_sample` |

`REQ` and `TDigest`, once only for stored sketches, are now exported by `streamgauge`, as `tail_quantiles` and
`tdigest_quantiles`; here they also have their old names.
"""

from .operators.definition.aggregates import tail_quantiles as req
from .operators.definition.aggregates import tdigest_quantiles as tdigest
from .operators.definition.aggregates_stored import classic_quantiles, cpc, tuple, var_opt
from .sketches.req import REQ
from .sketches.stored.classic_quantiles import ClassicQuantiles
from .sketches.stored.cpc import CPC
from .sketches.stored.var_opt import VarOpt
from .sketches.tdigest import TDigest
from .sketches.theta import Tuple

__all__ = [
    "CPC",
    "REQ",
    "ClassicQuantiles",
    "TDigest",
    "Tuple",
    "VarOpt",
    "classic_quantiles",
    "cpc",
    "req",
    "tdigest",
    "tuple",
    "var_opt",
]

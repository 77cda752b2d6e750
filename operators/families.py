"""The only table of families: the classes for an aggregate's name, on every engine.

To add a family, add its folder and a line here. The `aggregate` of its class of groups defines how it is
requested. Aggregates, the package's exports, Spark's functions, the warm-up and the shared law tests all look
families up here. Classes are given by name, not imported, so reading the table imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .class_loading import load_class

if TYPE_CHECKING:
    import pyarrow as pa

    from ..sketches.core.aggregated import Aggregated
    from ..sketches.core.protocol import Groups, Sketch

MOMENT = ("time", "partition", "offset")
"""The inputs that every row has by itself, without naming a column."""


@dataclass(frozen=True, slots=True)
class Family:
    """An entry of the table: an aggregate's name, and the import path of its class, ``"floor.folder:Class"``.

    That is the class of a single sketch. The class of many groups is beside it, with the suffix "Groups". An
    exact aggregate, whose column contains plain values, only has the class of groups.
    """

    name: str
    place: str

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return self.place.partition(":")[2]

    @property
    def exact(self) -> bool:
        """Whether the aggregate's column contains plain values, not sketches."""
        return self.place.endswith("Groups")

    @property
    def stored(self) -> bool:
        """Whether it exists to read, query and merge others' stored sketches: public in `streamgauge.stored`.

        >>> [name for name in ("distinct", "cpc", "tuple") if family(name).stored]
        ['cpc', 'tuple']
        """
        return self.name == "tuple" or self.place.startswith("sketches.stored.")

    @property
    def installed(self) -> bool:
        """Whether the package that it requires, possibly that of an extra, is installed."""
        return not self.place.startswith("sketches.stored.") or find_spec("datasketches") is not None

    @property
    def keeps_values(self) -> bool:
        """Whether its answers contain values of its column.

        >>> [name for name in ("distinct", "top_k", "sample", "sum", "min") if family(name).keeps_values]
        ['top_k', 'sample', 'min']
        """
        if self.exact:
            return self.name in ("min", "max", "first", "last")
        return any(hasattr(self.sketch_class(), one) for one in ("top", "values", "samples", "strata"))

    def sketch_class(self) -> type[Sketch]:
        """The class of a single sketch, imported now. Raises `TypeError` for an exact aggregate."""
        if self.exact:
            raise TypeError(f"{self.name} is exact: its column holds plain values, no sketches")
        return load_class(self.place)

    def groups_class(self) -> type[Groups]:
        """The class of many groups, imported now."""
        return load_class(self.place if self.exact else f"{self.place}Groups")

    @property
    def aggregate(self) -> Aggregated:
        """The class's description as an aggregate; imports the class."""
        return self.groups_class().aggregate

    @property
    def params(self) -> Mapping[str, Any]:
        """See `Aggregated`, as for the following properties."""
        return self.aggregate.params

    @property
    def answer(self) -> Mapping[str, Any]:
        """The parameters of the answer, with their defaults."""
        return self.aggregate.answer

    @property
    def inputs(self) -> tuple[str, ...]:
        """Further row-wise inputs."""
        return self.aggregate.inputs

    @property
    def optional(self) -> tuple[str, ...]:
        """Further row-wise inputs that are optional."""
        return self.aggregate.optional

    @property
    def of_column(self) -> Callable[[pa.DataType], dict[str, Any]]:
        """The parameters that the column's type determines."""
        return self.aggregate.of_column

    @property
    def seeded(self) -> bool:
        """Whether groups take a seed."""
        return self.aggregate.seeded

    @property
    def spark_merge(self) -> str:
        """Spark's own aggregate that merges the column."""
        return self.aggregate.spark_merge


FAMILIES: dict[str, Family] = {
    name: Family(name, place)
    for name, place in (
        ("distinct", "sketches.hll:HLL"),
        ("distinct_set", "sketches.theta:Theta"),
        ("quantiles", "sketches.ddsketch:DDSketch"),
        ("kll_quantiles", "sketches.kll:KLL"),
        ("tail_quantiles", "sketches.req:REQ"),
        ("tdigest_quantiles", "sketches.tdigest:TDigest"),
        ("top_k", "sketches.frequent_items:FrequentItems"),
        ("sample", "sampling.reservoir:Reservoir"),
        ("frequency", "sketches.count_min:CountMin"),
        ("membership", "sketches.bloom:Bloom"),
        ("sliding_distinct", "sketches.sliding_hll:SlidingHLL"),
        ("sliding_membership", "sketches.sliding_bloom:SlidingBloom"),
        ("weighted_sample", "sampling.weighted:WeightedReservoir"),
        ("decayed_sample", "sampling.decayed:DecayedReservoir"),
        ("decayed_count", "sampling.decayed_count:DecayedCount"),
        ("decayed_quantiles", "sampling.decayed_quantiles:DecayedQuantiles"),
        ("recent_sample", "sampling.sliding:SlidingWindowSample"),
        ("stratified_sample", "sampling.stratified:StratifiedReservoir"),
        ("bernoulli_sample", "sampling.bernoulli:BernoulliSample"),
        ("hash_sample", "sampling.hash_sample:HashSample"),
        ("cpc", "sketches.stored.cpc:CPC"),
        ("classic_quantiles", "sketches.stored.classic_quantiles:ClassicQuantiles"),
        ("var_opt", "sketches.stored.var_opt:VarOpt"),
        ("tuple", "sketches.theta:Tuple"),
        ("count", "sketches.exact:CountGroups"),
        ("sum", "sketches.exact:SumGroups"),
        ("mean", "sketches.exact:MeanGroups"),
        ("min", "sketches.exact:MinGroups"),
        ("max", "sketches.exact:MaxGroups"),
        ("first", "sketches.exact:FirstGroups"),
        ("last", "sketches.exact:LastGroups"),
        ("variance", "sketches.exact:VarianceGroups"),
    )
}

RENAMED = {"req": "tail_quantiles", "tdigest": "tdigest_quantiles"}
"""Former names of aggregates in the definitions of stored columns, with their current names."""


def family(name: str) -> Family:
    """The entry of an aggregate. Raises `KeyError` naming all aggregates.

    >>> family("distinct").params["lg_k"]
    12
    """
    if name not in FAMILIES:
        raise KeyError(f"no aggregate is called {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]

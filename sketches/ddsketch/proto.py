"""The published protobuf schema of DDSketch, declared for the protobuf library.

Source: github.com/DataDog/sketches-java, `DDSketch.proto` (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto


def _message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="streamgauge/ddsketch.proto", package="streamgauge.ddsketch", syntax="proto3"
    )

    def add(message: Any, name: str, number: int, kind: int, **more: Any) -> None:
        message.field.add(name=name, number=number, type=kind, **{"label": _F.LABEL_OPTIONAL, **more})

    scope = ".streamgauge.ddsketch."
    mapping = file.message_type.add(name="IndexMapping")
    kinds = mapping.enum_type.add(name="Interpolation")
    for number, name in enumerate(["NONE", "LINEAR", "QUADRATIC", "CUBIC"]):
        kinds.value.add(name=name, number=number)
    add(mapping, "gamma", 1, _F.TYPE_DOUBLE)
    add(mapping, "indexOffset", 2, _F.TYPE_DOUBLE)
    add(mapping, "interpolation", 3, _F.TYPE_ENUM, type_name=f"{scope}IndexMapping.Interpolation")
    store = file.message_type.add(name="Store")
    entry = store.nested_type.add(name="BinCountsEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, _F.TYPE_SINT32)
    add(entry, "value", 2, _F.TYPE_DOUBLE)
    many = {"label": _F.LABEL_REPEATED}
    add(store, "binCounts", 1, _F.TYPE_MESSAGE, type_name=f"{scope}Store.BinCountsEntry", **many)
    add(store, "contiguousBinCounts", 2, _F.TYPE_DOUBLE, **many)
    add(store, "contiguousBinIndexOffset", 3, _F.TYPE_SINT32)
    sketch = file.message_type.add(name="DDSketch")
    add(sketch, "mapping", 1, _F.TYPE_MESSAGE, type_name=f"{scope}IndexMapping")
    add(sketch, "positiveValues", 2, _F.TYPE_MESSAGE, type_name=f"{scope}Store")
    add(sketch, "negativeValues", 3, _F.TYPE_MESSAGE, type_name=f"{scope}Store")
    add(sketch, "zeroCount", 4, _F.TYPE_DOUBLE)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("streamgauge.ddsketch.DDSketch"))


DDSketchMessage: Any = _message()
"""The message class; its fields are those of the published schema."""

"""Descriptors of Protobuf messages from tables of their fields, for formats of which only part is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

Fields = Mapping[str, tuple[int, str]]
"""A message's fields: the number and the type of each, a scalar type or the name of another message."""


def described(
    package: str, messages: Mapping[str, Fields], repeated: Collection[str] = (), one_of: Collection[str] = ()
) -> Any:
    """Return a `FileDescriptorSet` of messages whose fields are optional except those `repeated`.

    Fields named in `one_of` are the members of one ``oneof`` of their message.

    >>> described("p", {"A": {"n": (1, "uint64"), "b": (2, "A")}}, ["b"]).file[0].message_type[0].name
    'A'
    """
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

    files = FileDescriptorSet()
    file = files.file.add(name=f"{package}.proto", package=package, syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = "LABEL_REPEATED" if field in repeated else "LABEL_OPTIONAL"
            made = message.field.add(name=field, number=number, label=getattr(FieldDescriptorProto, label))
            if kind in messages:
                made.type, made.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                made.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
            if field in one_of:
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                made.oneof_index = 0
    return files

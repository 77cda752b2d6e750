"""Protobuf's message descriptions, in whatever form a user has them: a class, descriptors, or .proto text.

They are stored as the bytes of file descriptors, each after those that it imports, from which any process
builds the same message class in a pool of its own.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Files = tuple[bytes, ...]


def files_of(given: Any) -> Files:
    """The file descriptors of a message class, of a `FileDescriptorSet` or its bytes, or of .proto text.

    Raises `ValueError` for input that can't be read or compiled, and `TypeError` for anything else.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    if hasattr(given, "DESCRIPTOR") and not isinstance(given, FileDescriptorSet):
        return _with_imports(given.DESCRIPTOR.file)
    if isinstance(given, str):
        return compiled("given.proto", {"given.proto": given})
    try:
        descriptors = FileDescriptorSet.FromString(given) if isinstance(given, bytes) else given
        return ordered({file.name: file.SerializeToString(deterministic=True) for file in descriptors.file})
    except (AttributeError, TypeError):
        raise TypeError(
            "protobuf: the schema is a message class, a FileDescriptorSet or its bytes, or the text of a "
            f".proto file, not {type(given).__name__}"
        ) from None
    except Exception as error:
        raise ValueError(f"protobuf: these bytes are not a FileDescriptorSet: {error}") from None


def _with_imports(file: Any) -> Files:
    files: dict[str, bytes] = {}

    def add(one: Any) -> None:
        for needed in one.dependencies:
            add(needed)
        files.setdefault(one.name, one.serialized_pb)

    add(file)
    return tuple(files.values())


def ordered(files: Mapping[str, bytes]) -> Files:
    """Serialised files, each after those that it imports; Protobuf's own are added. Raises `ValueError`."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    files_by_name: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in files_by_name:
            return
        data = files.get(name) or _own(name)
        for needed in FileDescriptorProto.FromString(data).dependency:
            add(needed)
        files_by_name[name] = data

    for name in files:
        add(name)
    return tuple(files_by_name.values())


def _own(name: str) -> bytes:
    """One of the files that come with Protobuf, such as ``google/protobuf/timestamp.proto``."""
    if name.startswith("google/protobuf/") and name.endswith(".proto"):
        try:
            module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
        except ImportError:
            pass
        else:
            return module.DESCRIPTOR.serialized_pb
    raise ValueError(
        f"protobuf: the imported file {name!r} is missing; pass a FileDescriptorSet that includes it"
    )


def compiled(name: str, texts: Mapping[str, str]) -> Files:
    """The files of .proto texts by name; `name` is the requested one.

    Raises `ValueError` with protoc's message for a text that it can't compile.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory() as folder:
        for one, text in texts.items():
            path = Path(folder, one)
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                raise ValueError(f"protobuf: a file can't be named {one!r}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = Path(folder, "out.bin")
        command = [*_compiler(), f"-I{folder}", "--include_imports", f"--descriptor_set_out={out}", name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"protobuf: {done.stderr.strip() or 'protoc failed'}")
        descriptors = FileDescriptorSet.FromString(out.read_bytes())
    return ordered({file.name: file.SerializeToString(deterministic=True) for file in descriptors.file})


def _compiler() -> list[str]:
    if find_spec("grpc_tools") is not None:
        import grpc_tools

        own = Path(grpc_tools.__path__[0], "_proto")
        return [sys.executable, "-m", "grpc_tools.protoc", f"-I{own}"]
    if (path := shutil.which("protoc")) is not None:
        return [path]
    raise ValueError(
        "protobuf: to compile .proto text, install streamgauge with its extra 'protobuf', or install protoc; "
        "or pass a message class or a FileDescriptorSet, as protoc --include_imports --descriptor_set_out "
        "writes it"
    )


def message_class(files: Files, name: str) -> Any:
    """The class of a message by its full name. Raises `ValueError` if it is in none of the files."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for data in files:
        pool.AddSerializedFile(data)
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        known = ", ".join(names_in(files[-1])) if files else "no message"
        raise ValueError(f"protobuf: there is no message {name!r}; there are {known}") from None


def names_in(file: bytes) -> list[str]:
    """The full names of a file's messages, nested ones included."""
    return [name for name, _ in _walk(file)]


def name_at(file: bytes, indexes: tuple[int, ...]) -> str | None:
    """The full name of the message that a wire format's indexes lead to; None if they lead nowhere."""
    return next((name for name, place in _walk(file) if place == indexes), None)


def _walk(file: bytes) -> list[tuple[str, tuple[int, ...]]]:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    listed: list[tuple[str, tuple[int, ...]]] = []

    def add(messages: Any, within: str, place: tuple[int, ...]) -> None:
        for at, message in enumerate(messages):
            name = f"{within}.{message.name}" if within else message.name
            listed.append((name, (*place, at)))
            add(message.nested_type, name, (*place, at))

    described = FileDescriptorProto.FromString(file)
    add(described.message_type, described.package, ())
    return listed

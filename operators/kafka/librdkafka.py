"""The librdkafka inside the confluent-kafka package, through its C interface: its settings, and producing in
batches.
"""

from __future__ import annotations

import ctypes as c
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_pointer, _text, _int, _size = c.c_void_p, c.c_char_p, c.c_int, c.c_size_t
_error = _pointer  # rd_kafka_error_t, which the caller destroys

ERROR_CALLBACK = c.CFUNCTYPE(None, _pointer, _int, _text, _pointer)
"""The type that `rd_kafka_conf_set_error_cb` accepts: called in the thread of a call to the library."""

# name → (result, arguments)
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "rd_kafka_version": (_int, []),
    "rd_kafka_conf_new": (_pointer, []),
    "rd_kafka_conf_destroy": (None, [_pointer]),
    "rd_kafka_conf_set": (_int, [_pointer, _text, _text, _text, _size]),
    "rd_kafka_conf_set_log_cb": (None, [_pointer, _pointer]),
    "rd_kafka_conf_set_error_cb": (None, [_pointer, ERROR_CALLBACK]),
    "rd_kafka_new": (_pointer, [_int, _pointer, _text, _size]),
    "rd_kafka_destroy": (None, [_pointer]),
    "rd_kafka_topic_new": (_pointer, [_pointer, _text, _pointer]),
    "rd_kafka_topic_destroy": (None, [_pointer]),
    "rd_kafka_produce_batch": (_int, [_pointer, c.c_int32, _int, _pointer, _int]),
    "rd_kafka_produceva": (_error, [_pointer, _pointer, _size]),
    "rd_kafka_poll": (_int, [_pointer, _int]),
    "rd_kafka_purge": (_int, [_pointer, _int]),
    "rd_kafka_init_transactions": (_error, [_pointer, _int]),
    "rd_kafka_begin_transaction": (_error, [_pointer]),
    "rd_kafka_commit_transaction": (_error, [_pointer, _int]),
    "rd_kafka_abort_transaction": (_error, [_pointer, _int]),
    "rd_kafka_fatal_error": (_int, [_pointer, _text, _size]),
    "rd_kafka_error_code": (_int, [_error]),
    "rd_kafka_error_string": (_text, [_error]),
    "rd_kafka_error_is_fatal": (_int, [_error]),
    "rd_kafka_error_is_retriable": (_int, [_error]),
    "rd_kafka_error_txn_requires_abort": (_int, [_error]),
    "rd_kafka_error_destroy": (None, [_error]),
}


@cache
def library() -> c.CDLL | None:
    """The library that confluent-kafka itself uses, or None if it can't be loaded."""
    import confluent_kafka

    version = confluent_kafka.libversion()[1]
    for path in _candidates():
        try:
            loaded = c.CDLL(str(path))
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError):
            continue
        # Another librdkafka, such as the system's, might have other settings.
        if loaded.rd_kafka_version() == version:
            return loaded
    return None


def _candidates() -> Iterator[Path]:
    """Paths of the library: bundled in wheels (Linux, macOS, Windows), already loaded, or linked in."""
    import confluent_kafka
    from confluent_kafka import cimpl

    package = Path(confluent_kafka.__file__).parent
    for folder in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
        yield from sorted(folder.glob("librdkafka*"))
    if sys.platform == "linux":
        maps = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        yield from {Path(line.split(maxsplit=5)[5]): None for line in maps if "/librdkafka" in line}
    yield Path(cimpl.__file__)

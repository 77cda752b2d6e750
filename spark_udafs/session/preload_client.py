"""The program that Spark starts as Python: ``python -IS preload_client.py socket …`` and its arguments.

If the process with preloaded modules (`preload_server`) answers, it runs Spark's module; this program passes
it the standard streams and exits with its exit code. For anything else, and if the server declines, this
process becomes Python itself. It can only import the standard library, of which it loads little; the request
format and the name of our daemon are repeated here from `worker_server` and `python_launcher`.
"""

import json
import os
import socket
import struct
import sys

_NUMBER = struct.Struct("=q")
_DAEMON, _OUR_DAEMON = "pyspark.daemon", "streamgauge.spark_udafs.session.preloaded_daemon"
_OURS = ("pyspark.", _OUR_DAEMON)


def without_zips(path: str) -> str:
    """Remove PySpark's zips and Spark's jar from a module path; the interpreter's own packages replace them.

    Every process would compile the modules in a zip again, and read a jar's list of files.

    >>> without_zips("/s/python/lib/pyspark.zip:/s/python/lib/py4j-0.1-src.zip:/s/jars/spark-core_2.jar:/own")
    '/own'
    """
    return os.pathsep.join(one for one in path.split(os.pathsep) if not _is_path_of_spark(one))


def _is_path_of_spark(path: str) -> bool:
    folder, name = os.path.split(path)
    if name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith("-src.zip")):
        return folder.endswith("python/lib")
    return name.startswith("spark-core_") and name.endswith(".jar")


def exit_code(server: str, arguments: list[str]) -> int | None:
    """Run a module in a process of the server and return its exit code; None if the server doesn't."""
    if arguments[:1] != ["-m"] or not arguments[1].startswith(_OURS):
        return None
    request: dict[str, object] = {"arguments": arguments[1:], "environment": dict(os.environ)}
    try:
        request["folder"] = os.getcwd()  # noqa: PTH109 - to load pathlib takes as long as all else here
        data = json.dumps(request).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server)
            socket.send_fds(connection, [_NUMBER.pack(len(data))], [0, 1, 2])
            connection.sendall(data)
            if len(connection.recv(_NUMBER.size, socket.MSG_WAITALL)) < _NUMBER.size:
                return None
            ended = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
    except OSError:
        return None
    code: int = _NUMBER.unpack(ended)[0] if len(ended) == _NUMBER.size else 1
    return code if code >= 0 else 128 - code


def main(server: str, python: str, arguments: list[str]) -> None:
    """Have the server run the module, or become Python and run it."""
    if arguments[:2] == ["-m", _DAEMON]:
        arguments[1] = _OUR_DAEMON
    os.environ["PYTHONPATH"] = without_zips(os.environ.get("PYTHONPATH", ""))
    if (code := exit_code(server, arguments)) is not None:
        os._exit(code)
    os.execv(python, [python, *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

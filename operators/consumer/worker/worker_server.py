"""Worker processes, forked from a server process that has loaded what they run.

Loading takes an interpreter more than a second, so workers that each loaded everything would compete for
cores at every start. Here one process loads, once for all runs of a program, and forks a worker in
milliseconds whenever one is needed. What is loaded before a fork has no threads of its own except those that
their libraries handle across forks (OpenBLAS, Arrow's allocator). Polars is not among it, because its thread
pool does not survive a fork. A worker loads Polars when it starts, which takes as long as a run needs to look
up its topics, so a run forks its workers before it does that.

The program holds one end of a socket. Over it, it sends what to load and, for each worker, its standard
input, output and error, and a pipe over which the server reports the process's id and, once it has ended, its
exit status. When the program closes its end or dies, the server ends with the last of its workers, which end
by their own standard input. A server that has been idle for a minute ends as well.

A server can also listen on a named socket, on which other programs started by the first one request processes
(`ForkRequest`).
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import cloudpickle

from ...subprocess_module import environment
from ..signals import STOP_SIGNALS

_NUMBER = struct.Struct("=q")
_FORK, _PREPARE = b"f", b"p"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` (malloc.h)."""
_IDLE_SECONDS = 60.0
_END_SECONDS = 1.0
_REQUEST_SECONDS = 5.0
_LONGEST_REQUEST = 1 << 24
_FORKS = sys.platform == "linux"
"""On other systems, the system's own libraries don't survive a fork."""


class WorkerServer:
    """The program's side: starts workers, and the server when it is first needed, as ``python -m module``.

    The module's main calls `serve` with its first two arguments; further ones are `arguments`. A server has
    the environment and working directory that the program had at the time, and `variables` in addition to its
    environment; if these have changed, another server replaces it. A server without workers and requests for
    `idle_seconds` ends, until it is needed again.
    """

    def __init__(
        self,
        module: str,
        idle_seconds: float = _IDLE_SECONDS,
        arguments: Sequence[str] = (),
        variables: Mapping[str, str] = {},
    ) -> None:
        self._module = module
        self._arguments = [str(idle_seconds), *arguments]
        self._variables = variables
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._socket: socket.socket | None = None
        self._setting: tuple[Any, ...] = ()
        self._spares: list[ForkedProcess] = []

    @staticmethod
    def possible() -> bool:
        """Whether processes can be forked here."""
        return _FORKS

    def prepare(self, what: object, workers: int = 0) -> None:
        """Load what workers will need, and return immediately; `what` is pickled for `serve`'s `load`.

        `workers` processes are started to load what each has to load itself; `fork` returns them, `release`
        ends them.
        """
        with _pickled(what) as file:
            self._request(_PREPARE, [file.fileno()])
        for _ in range(workers - len(self._spares)):
            self._spares.append(self._fork_process())

    def prepare_running(self, what: object) -> None:
        """Like `prepare`, but in a server that already runs, even if the environment has changed since."""
        with self._lock, suppress(OSError), _pickled(what) as file:
            if self._socket is not None:
                self._send(_PREPARE, [file.fileno()])

    def fork(self) -> ForkedProcess:
        """A new worker. Returns immediately; the process exists as soon as the server has loaded."""
        with self._lock:
            self._forget_stale()
            while self._spares:
                if (process := self._spares.pop()).poll() is None:
                    return process
        return self._fork_process()

    def release(self) -> None:
        """End prepared workers that are not needed after all."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        for process in self._spares:
            process.stdin.close()
            process.stdout.close()
        self._spares.clear()

    def _fork_process(self) -> ForkedProcess:
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        status, theirs_status = os.pipe()
        theirs = [theirs_in, theirs_out, theirs_status]
        try:
            self._request(_FORK, [*theirs, 2])
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return ForkedProcess(stdin, stdout, status)

    def end(self) -> None:
        """End the server; it continues while it has workers."""
        with self._lock:
            self._forget()
            for process in self._processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END_SECONDS)

    def _request(self, request: bytes, descriptors: list[int]) -> None:
        with self._lock:
            self._forget_stale()
            try:
                self._send(request, descriptors)
            except OSError:  # the server was killed, or has ended
                self._forget()
                self._send(request, descriptors)

    def _send(self, request: bytes, descriptors: list[int]) -> None:
        if self._socket is None:
            self._start()
        assert self._socket is not None
        socket.send_fds(self._socket, [request], descriptors)

    def _start(self) -> None:
        self._processes = [process for process in self._processes if process.poll() is None]
        self._socket, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", self._module, str(theirs.fileno()), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**environment(), **self._variables},
                pass_fds=[theirs.fileno()],
            )
        self._processes.append(process)

    def _forget_stale(self) -> None:
        """Forget a server with another environment or working directory."""
        if self._setting != (setting := _setting()):
            self._forget()
            self._setting = setting

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._release()


def _pickled(what: object) -> IO[bytes]:
    """An in-memory file with a pickled object, for a server."""
    file = os.fdopen(os.memfd_create("prepared"), "wb")
    cloudpickle.dump(what, file)
    file.flush()
    return file


def _setting() -> tuple[Any, ...]:
    """What a process inherits from its parent, and its process id: a fork of this process has no server."""
    place = Path().stat()
    return os.getpid(), place.st_dev, place.st_ino, environment()


class ForkedProcess:
    """A worker's process, with part of the interface of `subprocess.Popen`."""

    def __init__(self, stdin: int, stdout: int, status: int) -> None:
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._status = os.fdopen(status, "rb", buffering=0)
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._code: int | None = None
        self._closed = False

    @property
    def pid(self) -> int:
        """The process's id; waits until it exists. Raises `ChildProcessError` if it never will."""
        with self._lock:
            self._read(None)
            if self._pid is None:
                raise ChildProcessError("a worker process could not be started: its server was killed")
            return self._pid

    def poll(self) -> int | None:
        """Its exit status, as in `Popen.poll`; None while it runs."""
        with self._lock:
            return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises `subprocess.TimeoutExpired`."""
        with self._lock:
            code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
        return code

    def kill(self) -> None:
        """Kill it."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        """The exit code, if it arrives within `timeout` seconds."""
        if self._code is None:
            deadline = None if timeout is None else time.monotonic() + timeout
            if self._pid is None:
                self._read(timeout)
            if self._pid is not None:
                left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
                code = self._number(left)
                if code is not None:
                    self._code = code
                elif self._closed and not _is_alive(self._pid):
                    self._code = -signal.SIGKILL
            elif self._closed:
                self._code = -signal.SIGKILL
        return self._code

    def _read(self, timeout: float | None) -> None:
        if self._pid is None:
            self._pid = self._number(timeout)

    def _number(self, timeout: float | None) -> int | None:
        """The next number from the server; None if none arrives in time, or ever."""
        if self._closed or not select.select([self._status], [], [], timeout)[0]:
            return None
        data = self._status.read(_NUMBER.size)
        if len(data) < _NUMBER.size:  # the server was killed before it could report
            self._closed = True
            return None
        return int(_NUMBER.unpack(data)[0])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Another program's request for a process: how ``python`` was started there."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str


OURS = ForkRequest((), {}, "")
"""The request of the program that started the server."""


def serve(
    control: int,
    load: Callable[[Any], None],
    idle_seconds: float = _IDLE_SECONDS,
    name: str | None = None,
    accepts: Callable[[ForkRequest], bool] = lambda request: True,
) -> ForkRequest | None:
    """Run the server's side, over the socket with this number; returns the request in each forked process.

    Returns None when the server ends. `load` is called with None once, and with whatever a program prepares.
    It must not start threads that a forked process would miss. Other programs' requests arrive on the Unix
    socket `name`; rejected ones are answered.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # it ends with the program
    listener = None if name is None else _listening(name)
    _keep_freed_memory()
    load(None)
    gc.freeze()
    return _Server(control, load, idle_seconds, listener, accepts).run()


def _listening(name: str) -> socket.socket:
    """A socket that takes over the name and queues requests; a previous socket loses the name."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{name}.part")
    listener.listen(socket.SOMAXCONN)
    Path(f"{name}.part").rename(name)
    return listener


def _keep_freed_memory() -> None:
    """Make the C library return only very large free memory to the system.

    Batches with some MB per column follow one another; otherwise the library would request memory for
    each, and the system would clear it first. This is for workers only: the program's own memory isn't ours
    to manage.
    """
    with suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)
        mallopt(_TRIM_THRESHOLD, 64 << 20)


class _Server:
    def __init__(
        self,
        control: int,
        load: Callable[[Any], None],
        idle_seconds: float,
        listener: socket.socket | None,
        accepts: Callable[[ForkRequest], bool],
    ) -> None:
        self._control = socket.socket(fileno=control)
        self._listener = listener
        self._accepts = accepts
        self._load = load
        self._idle_seconds = idle_seconds
        self._statuses: dict[int, int] = {}
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken)

    def run(self) -> ForkRequest | None:
        """Fork until the program closes its end and all workers have ended; returns requests in workers."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            if self._listener is not None:
                selector.register(self._listener, selectors.EVENT_READ)
            open_ = True
            while open_ or self._statuses:
                ready = selector.select(None if self._statuses else self._idle_seconds)
                if not ready:
                    # Later senders start another server; earlier requests are still queued here.
                    self._control.shutdown(socket.SHUT_RD)
                for key, _ in ready:
                    if key.fileobj == self._wake:
                        os.read(self._wake, 65_536)
                        self._report_ends()
                        continue
                    if key.fileobj == self._listener:
                        if (request := self._answered(self._listener)) is not None:
                            return request
                        continue
                    kind, descriptors, _, _ = socket.recv_fds(self._control, 1, 4)
                    if not kind:
                        selector.unregister(self._control)
                        open_ = False
                        if self._listener is not None:
                            selector.unregister(self._listener)
                            self._listener.close()
                    elif kind == _PREPARE:
                        self._prepare(*descriptors)
                    elif self._forked(*descriptors):
                        return OURS
        return None

    def _answered(self, listener: socket.socket) -> ForkRequest | None:
        """Fork a process for another program's request, if accepted; returns the request in that process."""
        descriptors: list[int] = []
        with suppress(Exception), listener.accept()[0] as client:  # malformed requests get no answer
            client.settimeout(_REQUEST_SECONDS)
            size, descriptors, _, _ = socket.recv_fds(client, _NUMBER.size, 3)
            with client.makefile("rb") as file:
                text = file.read(min(*_NUMBER.unpack(size), _LONGEST_REQUEST))
            request = ForkRequest(**json.loads(text))
            if self._accepts(request):
                if self._forked_for(client, *descriptors):
                    return request
                descriptors = []
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def _forked_for(self, client: socket.socket, stdin: int, stdout: int, stderr: int) -> bool:
        status = os.dup(client.fileno())
        os.set_blocking(status, True)
        try:
            return self._forked(stdin, stdout, status, stderr)
        except OSError:
            os.close(status)
            raise

    def _prepare(self, descriptor: int) -> None:
        with open(descriptor, "rb") as file, suppress(Exception):  # workers get the same error, and report it
            file.seek(0)
            self._load(pickle.load(file))
        gc.freeze()

    def _forked(self, stdin: int, stdout: int, status: int, stderr: int) -> bool:
        with warnings.catch_warnings():
            # Newer versions of Python warn of any thread; the threads here survive a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            self._become_worker(stdin, stdout, stderr)
            os.close(status)
            return True
        self._statuses[pid] = status
        self._write(status, pid)
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        return False

    def _become_worker(self, stdin: int, stdout: int, stderr: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, number)
        self._control.close()
        if self._listener is not None:
            self._listener.close()
        for descriptor in (stdin, stdout, stderr, self._wake, self._woken, *self._statuses.values()):
            os.close(descriptor)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed()  # or all workers would draw the same numbers

    def _report_ends(self) -> None:
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            descriptor = self._statuses.pop(pid)
            self._write(descriptor, os.waitstatus_to_exitcode(status))
            os.close(descriptor)

    def _write(self, descriptor: int, number: int) -> None:
        with suppress(BrokenPipeError):
            os.write(descriptor, _NUMBER.pack(number))

"""Worker processes forked from one that has loaded what they run.

Loading it takes an interpreter more than a second, so that workers which each did so would take cores from
each other at every start. Here one process loads, once for all runs of a program, and forks a worker whenever
one is wanted, in milliseconds. What is loaded before a fork has no threads of its own but those that their
libraries see through it (OpenBLAS, Arrow's allocator). Polars isn't among it, whose pool does not survive
one; a worker loads that as it begins, which takes as long as a run needs to look up its topics: so its
workers are forked before it does.

The program holds one end of a socket and sends over it what is to be loaded and, for each worker, what is to
be its standard input, output and error, and a pipe over which the server reports the process's id and, once
it has ended, how. When the program closes its end or dies, the server ends with the last of its workers, who
end by their own standard input; one that has had nothing to do for a minute ends, too.

A server can also listen on a socket with a name, on which other programs that the first one starts request
processes (`ForkRequest`).
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
"""Elsewhere the system's own libraries don't survive a fork."""


class WorkerServer:
    """The program's side: starts workers, and the server when it is first needed, ``python -m module``.

    The module's main calls `serve` with its first two arguments; further ones are `arguments`. A server has
    the environment and the working directory that the program had then, and `variables` in its environment
    besides; where these have changed, another one takes its place. One that has no worker and no request for
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
        """Have it load what workers will need, and answer at once; `what` is pickled for `serve`'s `load`.

        So many workers begin to load what each loads by itself; `fork` gives them, or `release` ends them.
        """
        with _pickled(what) as file:
            self._request(_PREPARE, [file.fileno()])
        for _ in range(workers - len(self._spares)):
            self._spares.append(self._fork_process())

    def prepare_running(self, what: object) -> None:
        """As `prepare`, in the server that runs already, whatever has changed since; nothing without one."""
        with self._lock, suppress(OSError), _pickled(what) as file:
            if self._socket is not None:
                self._send(_PREPARE, [file.fileno()])

    def fork(self) -> ForkedProcess:
        """A new worker. It answers at once; the process is there as soon as the server has loaded."""
        with self._lock:
            self._forget_stale()
            while self._spares:
                if (process := self._spares.pop()).poll() is None:
                    return process
        return self._fork_process()

    def release(self) -> None:
        """End the workers that wait and are not needed after all."""
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
        """End the server; it stays for workers that still run."""
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
            except OSError:  # the server was killed, or ended
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
        """Forget a server that has another environment, or another working directory."""
        if self._setting != (setting := _setting()):
            self._forget()
            self._setting = setting

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._release()


def _pickled(what: object) -> IO[bytes]:
    """A file in memory for a server."""
    file = os.fdopen(os.memfd_create("prepared"), "wb")
    cloudpickle.dump(what, file)
    file.flush()
    return file


def _setting() -> tuple[Any, ...]:
    """What a process takes over from the one that starts it; to a fork of this one no server belongs."""
    place = Path().stat()
    return os.getpid(), place.st_dev, place.st_ino, environment()


class ForkedProcess:
    """A worker's process, with what `subprocess.Popen` has of it."""

    def __init__(self, stdin: int, stdout: int, status: int) -> None:
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._status = os.fdopen(status, "rb", buffering=0)
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._code: int | None = None
        self._closed = False

    @property
    def pid(self) -> int:
        """The process's id; waits until it is there. Raises `ChildProcessError` if it never will be."""
        with self._lock:
            self._read(None)
            if self._pid is None:
                raise ChildProcessError("a worker process could not be started: its server was killed")
            return self._pid

    def poll(self) -> int | None:
        """How it ended, as `Popen.poll` says it; None while it runs."""
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
        """End it now."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        """The exit code, if it comes within so many seconds."""
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
        """The next number from the server; None if none comes in time, or ever."""
        if self._closed or not select.select([self._status], [], [], timeout)[0]:
            return None
        data = self._status.read(_NUMBER.size)
        if len(data) < _NUMBER.size:  # the server was killed, and what it would have reported nobody knows
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
    """What another program requests to be a process: how ``python`` was started there."""

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
    """The server's side, over the socket of this number: in each forked process what requested it.

    At its end, None. `load` is called with None once, and with whatever a program prepares. It must start no
    thread that a forked process would miss. Other programs' requests come to the Unix socket `name`; those
    that it doesn't accept are told so.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # it ends with the program
    listener = None if name is None else _listening(name)
    _keep_freed_memory()
    load(None)
    gc.freeze()
    return _Server(control, load, idle_seconds, listener, accepts).run()


def _listening(name: str) -> socket.socket:
    """A socket that has its name once requests to it wait for an answer; one that had it loses it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{name}.part")
    listener.listen(socket.SOMAXCONN)
    Path(f"{name}.part").rename(name)
    return listener


def _keep_freed_memory() -> None:
    """Have the C library give back to the system only what it has very much of.

    Batches of some MB a column come one after another, for which it would else ask again each time, and the
    system clear it first. For the workers alone: the program's own memory isn't ours to manage.
    """
    with suppress(OSError, AttributeError):  # another C library
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
        """Fork until the program closes its end and the last worker has ended; a request in each worker."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            if self._listener is not None:
                selector.register(self._listener, selectors.EVENT_READ)
            open_ = True
            while open_ or self._statuses:
                ready = selector.select(None if self._statuses else self._idle_seconds)
                if not ready:
                    # Who sends from now on starts another server; what was sent before is still here.
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
        """Fork a process for another program that asks, if what it asks for is accepted; that, in it."""
        descriptors: list[int] = []
        with suppress(Exception), listener.accept()[0] as client:  # who sends nothing of use hears nothing
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
        with open(descriptor, "rb") as file, suppress(Exception):  # workers meet the same, and say so
            file.seek(0)
            self._load(pickle.load(file))
        gc.freeze()

    def _forked(self, stdin: int, stdout: int, status: int, stderr: int) -> bool:
        with warnings.catch_warnings():
            # Newer versions of Python warn of any thread; those that are here see a fork through.
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
            numpy.random.seed()  # or all workers would draw alike

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

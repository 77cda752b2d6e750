"""The SQL console: reads statements, with history and completion, and prints the result of each."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle

from ...operators.watching.terminal import write_line
from ...queries.sql.run.session import SqlSession
from ...queries.sql.run.statement_result import StatementResult
from .completion import STATEMENTS, candidates

HELP = f"""A statement ends with ; and may go over several lines.
Ctrl-C ends a continuous query, and clears what is typed.
  SHOW TOPICS;                            the topics
  PRINT 'topic' FROM BEGINNING LIMIT 3;   what is in one
  SHOW STREAMS; SHOW TABLES;              what was declared
  SHOW FUNCTIONS;                         aggregates and functions
  EXPLAIN SELECT …;                       the Python of a query
Statements begin with {", ".join(STATEMENTS[:8])}, …; docs/sql.md has them all.
Tab completes topics, streams, columns and functions; the arrow up brings back what was typed before.
  \\?  this text      \\q  ends the console, as Ctrl-D does, and the queries that it started"""
_TOPICS_SECONDS = 10.0


def run_console(
    session: SqlSession,
    topics: Callable[[], Iterable[tuple[str, int]]],
    show: Callable[[StatementResult], None],
) -> None:
    """Read statements and show their results, until `\\q` or Ctrl-D."""
    prompt: PromptSession[str] = PromptSession(
        history=_history(),
        completer=_Completer(session, topics),
        complete_in_thread=True,
        complete_while_typing=False,
        complete_style=CompleteStyle.COLUMN,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, number, wrapped: "  -> ".rjust(width),
    )
    write_line("Statements end with ;   \\? helps, \\q ends")
    while True:
        try:
            text = prompt.prompt("sql> ").strip()
        except KeyboardInterrupt:
            continue  # Ctrl-C clears the input
        except EOFError:
            return
        if text in ("\\q", "exit", "quit", "exit;", "quit;"):
            return
        if text == "\\?":
            for line in HELP.splitlines():
                write_line(line)
        elif text:
            run_until_interrupted(session, text, show)


def run_until_interrupted(session: SqlSession, text: str, show: Callable[[StatementResult], None]) -> None:
    """Show the results of statements until their end or Ctrl-C."""
    with _interruptible(), closing(session.run(text)) as outcomes:
        try:
            for outcome in outcomes:
                show(outcome)
        except KeyboardInterrupt:
            write_line("")  # the terminal has shown ^C at the beginning of the line


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within the block, turn each Ctrl-C into `KeyboardInterrupt`: two queries' may follow each other
    quickly."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_whole(text: str) -> bool:
    r"""Whether Enter submits the input: nothing, a console command, or statements that end with a ;

    >>> [is_whole(text) for text in ("", "\\?", "SHOW TOPICS", "SHOW TOPICS;", "exit")]
    [True, True, False, True, True]
    """
    bare = text.strip()
    return not bare or bare.startswith("\\") or bare.endswith(";") or bare in ("exit", "quit")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: is_whole(get_app().current_buffer.text)) & ~has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


def _history() -> History:
    """Return the input history of all consoles of this user; only of this one if it can't be stored."""
    try:
        folder: Path = user_state_path("streamgauge", ensure_exists=True)
        file = folder / "sql_history"
        file.touch(mode=0o600)
        return FileHistory(str(file))
    except OSError:
        return InMemoryHistory()


class _Completer(Completer):
    """Completes from the session's names; topics are fetched at most every ten seconds."""

    def __init__(self, session: SqlSession, topics: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._session = session
        self._topics = topics
        self._names: list[str] = []
        self._until = 0.0

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """See `prompt_toolkit.completion.Completer`."""
        words = candidates(
            document.text_before_cursor, self._session.catalog, self._topic_names, document.text
        )
        for name, length, kind in words:
            yield Completion(name, start_position=-length, display_meta=kind)

    def _topic_names(self) -> list[str]:
        if time.monotonic() > self._until:
            # Unreachable brokers must not interrupt typing.
            with suppress(Exception):
                self._names = [name for name, _ in self._topics()]
            self._until = time.monotonic() + _TOPICS_SECONDS
        return self._names

"""The language, on sqlglot's own extension points: a tokenizer, a parser, and statements of our own.

sqlglot makes the trees of queries and of scalar expressions. Added here: the window clauses of four systems,
``EMIT``, ``WITHIN`` of joins, and the statements around queries. No function is known to the parser: each
comes out by its name and its arguments, and `functions` says what it means.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokens import Token, Tokenizer, TokenType

from .errors import SqlError
from .statements import (
    CreateAlert,
    CreateAs,
    CreateSource,
    DeclaredColumn,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Node,
    Print,
    Query,
    RunScript,
    SetOption,
    Show,
    Statement,
    Terminate,
    Word,
)

SHOWN = ("TOPICS", "STREAMS", "TABLES", "QUERIES", "FUNCTIONS")
_LATER = {
    "PAUSE": "PAUSE: end the process; a run with --group goes on where it ended",
    "RESUME": "RESUME: start the same file again with the same --group",
}
_STATEMENTS = (
    *(
        "SELECT",
        "CREATE STREAM",
        "CREATE TABLE",
        "CREATE ALERT",
        "INSERT INTO",
        "SHOW",
        "LIST",
        "PRINT",
        "DESCRIBE",
        "DROP",
    ),
    *("SET", "EXPLAIN", "ASSERT VALUES", "TERMINATE", "RUN SCRIPT"),
)
_OF_SQLGLOT = ("Invalid expression", "Required keyword", "Expect", "Found multiple", "Cannot", "Unexpected")
"""How sqlglot's own messages begin."""

_TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class WindowClause(exp.Expression):
    """``WINDOW TUMBLING (…)``: the kind, and the parts by their names."""

    arg_types: ClassVar = {"kind": True, "parts": True}


class WindowedTable(exp.Expression):
    """``TUMBLE(t, ts, …)`` in FROM: the function's name, the time column, the lengths in their order."""

    arg_types: ClassVar = {"this": True, "time": True, "lengths": True, "partition": False}


class Emit(exp.Expression):
    """``EMIT FINAL`` or ``EMIT CHANGES``."""

    arg_types: ClassVar = {"this": True}


class Length(exp.Expression):
    """A length of time: microseconds."""

    arg_types: ClassVar = {"this": True}


UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def at(node: exp.Expr, token: Token) -> Any:
    """A node that stands where a token does."""
    node.update_positions(token)
    return node


class SqlTokenizer(Tokenizer):
    """Names in double quotes or backticks keep their case; no statement is swallowed as a whole."""

    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMANDS: ClassVar = set()
    KEYWORDS: ClassVar = {
        name: kind
        for name, kind in Tokenizer.KEYWORDS.items()
        if kind not in (TokenType.COMMAND, TokenType.HINT) and not name.startswith("{")
    }


class SqlParser(Parser):
    """See the module."""

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {
        name: parse
        for name, parse in Parser.FUNCTION_PARSERS.items()
        if name in ("CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION")
    }
    QUERY_MODIFIER_PARSERS: ClassVar = {
        **Parser.QUERY_MODIFIER_PARSERS,
        TokenType.WINDOW: lambda self: ("window_clause", self._window_clause()),
    }
    SUPPORTS_IMPLICIT_UNNEST = False

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Raise a `ParseError` that knows where its word begins."""
        token = token or self._curr or self._prev
        error = ParseError(message)
        error.token = token  # type: ignore[attr-defined]
        raise error

    def _parse_csv(self, parse_method: Any, sep: Any = TokenType.COMMA) -> list[Any]:
        """As sqlglot's, which takes two commas for one."""
        items: list[Any] = []
        while True:
            item = parse_method()
            if item is not None:
                items.append(item)
            elif items:
                self.raise_error(f"something must stand behind the comma, got {self._here()}")
            if not self._match(sep):
                return items
            if item is None:
                self.raise_error("something must stand before the comma", self._prev)

    # Words

    def _word(self) -> str:
        return self._curr.text.upper() if self._curr else ""

    def _is(self, *words: str) -> bool:
        """Whether these words come next, none of them quoted."""
        return bool(self._match_text_seq(*words, advance=False))

    def _take(self, *words: str) -> bool:
        return bool(self._match_text_seq(*words))

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            self.raise_error(f"{' '.join(words)} must stand here, got {self._here()}")

    def _here(self) -> str:
        return self._curr.text if self._curr else "the end of the statement"

    def _name(self, what: str) -> Word:
        token = self._curr
        named: Any = self._parse_id_var(any_token=False)
        if named is None or token is None:
            self.raise_error(f"the name of {what} must stand here, got {self._here()}")
        return Word(named.name, token.start, token.end + 1)

    def _text(self, what: str) -> Word:
        token = self._curr
        if not self._match(TokenType.STRING):
            self.raise_error(f"{what} must stand here, in single quotes, got {self._here()}")
        return Word(token.text, token.start, token.end + 1)

    def _whole(self, what: str) -> int:
        token = self._curr
        if not self._match(TokenType.NUMBER) or not token.text.isdigit() or int(token.text) < 1:
            self.raise_error(
                f"{what} must be a whole number ≥ 1, got {token.text if token else self._here()}", token
            )
        return int(token.text)

    # Lengths and windows

    def _length(self) -> Length:
        """``1 MINUTE``, ``INTERVAL '1' MINUTE`` or ``'1 minute'``."""
        token = self._curr
        if token is None:
            self.raise_error("a length such as 1 MINUTE must stand here")
        if self._take("INTERVAL"):
            parts = self._text("a number").value.split()
        elif self._match(TokenType.STRING):
            parts = token.text.split()
        else:
            if not self._match(TokenType.NUMBER):
                self.raise_error(f"a length such as 1 MINUTE must stand here, got {self._here()}")
            parts = [token.text]
        if len(parts) == 1:
            if not self._curr or self._curr.token_type in (TokenType.R_PAREN, TokenType.COMMA):
                self.raise_error("a unit must follow, such as SECONDS, MINUTES, HOURS or DAYS")
            parts.append(self._curr.text)
            unit_token = self._curr
            self._advance()
        else:
            unit_token = token
        number, unit = parts[0], " ".join(parts[1:]).upper()
        unit = unit if unit in UNITS else unit.removesuffix("S")
        if unit not in UNITS:
            known = ", ".join(f"{one}S" for one in UNITS)
            self.raise_error(f"a unit must be one of {known}, got {unit_token.text}", unit_token)
        if not number.isdigit() or int(number) < 1:
            self.raise_error(f"a length must be a whole number of units ≥ 1, got {number}", token)
        return at(Length(this=int(number) * UNITS[unit]), token)

    def _window_clause(self) -> WindowClause:
        self._advance()
        token = self._curr
        kind = self._word()
        if kind not in ("TUMBLING", "HOPPING", "SESSION"):
            self.raise_error(
                f"a window must be TUMBLING (SIZE 1 MINUTE), HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE) or "
                f"SESSION (5 MINUTES), got {self._here()}"
            )
        self._advance()
        self._need("(")
        parts: dict[str, Length] = {}
        while True:
            if kind == "SESSION" and not parts:
                name = "GAP"
            elif self._take("SIZE"):
                name = "SIZE"
            elif self._take("ADVANCE", "BY"):
                name = "ADVANCE BY"
            elif self._take("GRACE", "PERIOD"):
                name = "GRACE PERIOD"
            elif self._is("RETENTION"):
                self.raise_error(
                    "RETENTION: windows are not kept in a store; leave it out, and set the retention of the "
                    "topic"
                )
            else:
                self.raise_error(f"SIZE, ADVANCE BY or GRACE PERIOD must stand here, got {self._here()}")
            if name in parts:
                self.raise_error(f"{name} must stand once in a window")
            parts[name] = self._length()
            if not self._match(TokenType.COMMA):
                break
        self._need(")")
        needed = {"TUMBLING": ["SIZE"], "HOPPING": ["SIZE", "ADVANCE BY"], "SESSION": ["GAP"]}[kind]
        if missing := [one for one in needed if one not in parts]:
            self.raise_error(f"{kind} needs {missing[0]}, such as {missing[0]} 1 MINUTE", token)
        if extra := [one for one in parts if one not in (*needed, "GRACE PERIOD")]:
            self.raise_error(f"{kind} takes no {extra[0]}", token)
        return at(WindowClause(kind=kind, parts=parts), token)

    def _parse_query_modifiers(self, this: Any) -> Any:
        this = super()._parse_query_modifiers(this)
        if isinstance(this, exp.Select) and self._is("EMIT"):
            token = self._curr
            self._advance()
            if self._word() not in ("FINAL", "CHANGES"):
                self.raise_error(f"EMIT must be followed by FINAL or CHANGES, got {self._here()}")
            if this.args.get("emit"):
                self.raise_error("EMIT must stand once in a query", token)
            this.set("emit", at(Emit(this=self._word()), token))
            self._advance()
            return self._parse_query_modifiers(this)
        return this

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        if self._word() in ("EMIT", "WITHIN") and self._curr.token_type != TokenType.IDENTIFIER:
            return None
        return super()._parse_table_alias(alias_tokens)

    def _parse_table(self, *args: Any, **options: Any) -> Any:
        table = self._windowed_table()
        if table is None:
            table = super()._parse_table(*args, **options)
        elif alias := self._parse_table_alias():
            table.set("alias", alias)
        if table is not None and self._is("WITHIN"):
            token = self._curr
            self._advance()
            table.set("within", at(Length(this=self._length().this), token))
            if self._is("GRACE"):
                self.raise_error(
                    "GRACE PERIOD of a join: write it in the window, WINDOW TUMBLING (SIZE …, GRACE PERIOD …)"
                )
        return table

    def _windowed_table(self) -> Any:
        """``TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))`` or ``TUMBLE(t, ts, …)``; None if it is neither."""
        wrapped = self._is("TABLE", "(")
        index = self._index
        if wrapped:
            self._take("TABLE", "(")
        name, token = self._word(), self._curr
        if name not in _TABLE_FUNCTIONS or not self._next or self._next.token_type != TokenType.L_PAREN:
            self._retreat(index)
            return None
        self._advance(2)
        table_word = self._take("TABLE")
        table: Any = self._parse_table_parts()
        partition = None
        if self._match(TokenType.PARTITION_BY):
            partition = [self._parse_column()]
        self._need(",")
        if self._take("DESCRIPTOR", "("):
            time = self._parse_column()
            self._need(")")
        elif table_word:
            self.raise_error(f"DESCRIPTOR(…) with the time column must stand here, got {self._here()}")
        else:
            time = self._parse_column()
        lengths = []
        while self._match(TokenType.COMMA):
            lengths.append(self._length())
        self._need(")")
        if wrapped:
            self._need(")")
        wanted = 1 if name in ("TUMBLE", "SESSION") else 2
        if len(lengths) != wanted:
            self.raise_error(f"{name} takes {wanted} length{'s'[: wanted - 1]}, got {len(lengths)}", token)
        window = at(WindowedTable(this=name, time=time, lengths=lengths, partition=partition), token)
        table.set("windowed", window)
        return table

    # Statements

    def _parse_statement(self) -> Any:
        if not self._curr:
            return None
        word, token = self._word(), self._curr
        if word == "SHOW" or word == "LIST":
            return self._show()
        method: Callable[[SqlParser], Node] | None = _PARSERS.get(word)
        if method is not None:
            return method(self)
        if word in ("SELECT", "WITH", "FROM", "("):
            return Query(self._query())
        if word in _LATER:
            self.raise_error(_LATER[word], token)
        self.raise_error(f"a statement must begin with one of {', '.join(_STATEMENTS)}, got {token.text}")
        return None

    def _query(self) -> exp.Select:
        token = self._curr
        if self._is("WITH"):
            self.raise_error("WITH: name the rows by a CREATE STREAM … AS SELECT first, and read that")
        parsed: Any = self._parse_select() if self._curr else None
        parsed = self._parse_query_modifiers(parsed) if isinstance(parsed, exp.Select) else parsed
        if self._curr and self._curr.token_type in (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT):
            self.raise_error(
                f"{self._word()}: write two statements; INSERT INTO … SELECT puts rows of both into one topic"
            )
        if not isinstance(parsed, exp.Select):
            if isinstance(parsed, exp.SetOperation):
                self.raise_error(
                    "UNION, EXCEPT and INTERSECT: write two statements; INSERT INTO … SELECT puts rows of "
                    "both into one topic",
                    token,
                )
            self.raise_error(f"a SELECT must stand here, got {token.text if token else self._here()}", token)
        return at(parsed, token)  # where there is nothing else to point at

    def _show(self) -> Node:
        self._advance()
        token = self._curr
        if self._word() == "ALL":
            self._advance()
            token = self._curr
        if self._word() not in SHOWN:
            self.raise_error(f"SHOW must be followed by one of {', '.join(SHOWN)}, got {self._here()}")
        word = Word(self._word(), token.start, token.end + 1)
        self._advance()
        self._take("EXTENDED")
        return Show(word)

    def _print(self) -> Node:
        self._advance()
        named = self._curr and self._curr.token_type == TokenType.STRING
        topic = self._text("the topic's name") if named else self._name("a topic")
        beginning = self._take("FROM", "BEGINNING")
        if self._is("INTERVAL") or self._is("SAMPLE"):
            self.raise_error("INTERVAL of PRINT: filter the rows of a SELECT instead")
        limit = self._whole("LIMIT") if self._take("LIMIT") else None
        return Print(topic, beginning, limit)

    def _describe(self) -> Node:
        self._advance()
        self._take("EXTENDED")
        return Describe(self._name("a stream or table"))

    def _drop(self) -> Node:
        self._advance()
        kind = self._kind("DROP")
        if_exists = self._take("IF", "EXISTS")
        name = self._name(f"the {kind}")
        if self._is("DELETE"):
            self.raise_error("DELETE TOPIC: topics are deleted by Kafka's own tools")
        return Drop(kind, name, if_exists)

    def _kind(self, verb: str) -> str:
        for kind in ("STREAM", "TABLE"):
            if self._take(kind):
                return kind.lower()
        if self._word() in _LATER:
            self.raise_error(_LATER[self._word()])
        self.raise_error(f"{verb} must be followed by STREAM or TABLE, got {self._here()}")
        return ""

    def _set(self) -> Node:
        self._advance()
        name = self._text("the setting's name")
        self._need("=")
        return SetOption(name, self._text("the value"))

    def _explain(self) -> Node:
        token = self._curr
        self._advance()
        inner = self._parse_statement()
        if not isinstance(inner, Query | CreateAs | CreateAlert | InsertSelect):
            self.raise_error(
                "EXPLAIN explains a SELECT, a CREATE … AS SELECT or an INSERT INTO … SELECT", token
            )
        return Explain(inner)

    def _create(self) -> Node:
        self._advance()
        replace = self._take("OR", "REPLACE")
        if self._is("SOURCE"):
            self.raise_error("SOURCE: all streams and tables over topics are read only; leave the word out")
        if self._take("ALERT"):
            return self._alert(replace)
        kind = self._kind("CREATE")
        there = self._take("IF", "NOT", "EXISTS")
        name = self._name(f"the {kind}")
        columns: tuple[DeclaredColumn, ...] = ()
        if self._match(TokenType.L_PAREN):
            columns = tuple(self._columns())
        options = self._options() if self._is("WITH") else {}
        if self._take("AS"):
            if columns:
                self.raise_error("columns of a CREATE … AS SELECT are those of the SELECT; leave them out")
            return CreateAs(kind, name, options, self._query(), replace, there)
        if not options:
            self.raise_error(
                f"WITH (KAFKA_TOPIC='…', VALUE_FORMAT='JSON') or AS SELECT must stand here, got "
                f"{self._here()}"
            )
        return CreateSource(kind, name, columns, options, replace, there)

    def _alert(self, replace: bool) -> Node:
        if replace:
            self.raise_error("an alert is not replaced: change the script and run it again", self._prev)
        name = self._name("the alert")
        self._need("AS")
        select = self._query()
        return CreateAlert(name, self._options() if self._is("WITH") else {}, select)

    def _terminate(self) -> Node:
        self._advance()
        token = self._curr
        if token is not None and self._take("ALL"):
            return Terminate(Word("", token.start, token.end + 1))
        return Terminate(self._name("a query, or ALL,"))

    def _run_script(self) -> Node:
        self._need("RUN", "SCRIPT")
        return RunScript(self._text("the name of a file"))

    def _columns(self) -> list[DeclaredColumn]:
        columns = []
        while True:
            name = self._name("a column")
            token = self._curr
            kind: Any = self._parse_types(check_func=False, allow_identifiers=False)
            if not isinstance(kind, exp.DataType):
                self.raise_error(f"the type of {name} must stand here, got {self._here()}")
            if "start" not in kind.meta:
                kind.update_positions(token)
            role = ""
            if self._match(TokenType.PRIMARY_KEY) or self._take("PRIMARY", "KEY") or self._take("KEY"):
                role = "key"
            elif self._is("HEADERS") or self._is("HEADER"):
                self.raise_error("HEADERS: write the stream in Python, with message={'name': 'header:NAME'}")
            elif self._take("NOT", "NULL"):
                self.raise_error("NOT NULL: filter the rows, WHERE … IS NOT NULL", token)
            columns.append(DeclaredColumn(name, kind, role))
            if not self._match(TokenType.COMMA):
                break
        self._need(")")
        return columns

    def _options(self) -> dict[str, Word]:
        self._need("WITH")
        self._need("(")
        options: dict[str, Word] = {}
        while True:
            token = self._curr
            if token is None:
                self.raise_error("the name of an option must stand here")
            name = token.text.upper()
            self._advance()
            if name in options:
                self.raise_error(f"{name} must stand once in WITH", token)
            self._need("=")
            minus = "-" if self._match(TokenType.DASH) else ""
            value = self._curr
            if not value or value.token_type not in (
                TokenType.STRING,
                TokenType.NUMBER,
                TokenType.TRUE,
                TokenType.FALSE,
            ):
                self.raise_error(f"{name} must be a constant, got {self._here()}")
            self._advance()
            options[name] = Word(minus + value.text, value.start, value.end + 1)
            if not self._match(TokenType.COMMA):
                break
        self._need(")")
        return options

    def _insert(self) -> Node:
        self._advance()
        self._need("INTO")
        name = self._name("a stream")
        columns = self._column_names()
        if self._is("VALUES"):
            return InsertValues(name, columns, self._rows())
        if columns:
            self.raise_error("columns of an INSERT INTO … SELECT are those of the SELECT; leave them out")
        return InsertSelect(name, self._query())

    def _assert(self) -> Node:
        self._advance()
        if not self._is("VALUES"):
            self.raise_error(f"ASSERT must be followed by VALUES, got {self._here()}")
        self._advance()
        name = self._name("a stream or table")
        columns = self._column_names()
        return InsertValues(name, columns, self._rows(), expected=True)

    def _column_names(self) -> tuple[Word, ...]:
        """Names in brackets, if there are any."""
        columns: list[Word] = []
        if self._match(TokenType.L_PAREN):
            while True:
                columns.append(self._name("a column"))
                if not self._match(TokenType.COMMA):
                    break
            self._need(")")
        return tuple(columns)

    def _rows(self) -> tuple[exp.Tuple, ...]:
        self._need("VALUES")
        rows = []
        while True:
            token = self._curr
            self._need("(")
            values = self._parse_csv(self._parse_assignment)
            self._need(")")
            rows.append(at(exp.Tuple(expressions=values), token))
            if not self._match(TokenType.COMMA):
                break
        return tuple(rows)


_PARSERS: dict[str, Callable[[SqlParser], Node]] = {
    "PRINT": SqlParser._print,
    "DESCRIBE": SqlParser._describe,
    "DROP": SqlParser._drop,
    "SET": SqlParser._set,
    "EXPLAIN": SqlParser._explain,
    "CREATE": SqlParser._create,
    "INSERT": SqlParser._insert,
    "ASSERT": SqlParser._assert,
    "TERMINATE": SqlParser._terminate,
    "RUN": SqlParser._run_script,
}


class StreamgaugeSql(Dialect):
    """The dialect, by sqlglot's name ``streamgaugesql``."""

    tokenizer_class = SqlTokenizer
    parser_class = SqlParser  # type: ignore[assignment]
    Tokenizer = SqlTokenizer
    Parser = SqlParser


def statements_of(text: str) -> list[Statement]:
    """The statements of a script, in order. Raises `SqlError` for the first that isn't one.

    >>> [type(one.node).__name__ for one in statements_of("SHOW TOPICS; SELECT a FROM t EMIT CHANGES;")]
    ['Show', 'Query']
    """
    parts, statements = split(text), []
    for tokens in parts:
        statements.append(_parsed(text, tokens))
    return statements


def split(text: str) -> list[list[Token]]:
    """The words of each statement. Raises `SqlError` for text that has no words, such as an open quote."""
    dialect = StreamgaugeSql()
    try:
        tokens = dialect.tokenize(text)
    except TokenError as error:
        raise _untokenized(text, error) from None
    for token, following in pairwise(tokens):
        # Spark's GROUP BY window(…), and its window.start
        if token.token_type == TokenType.WINDOW and following.token_type in (
            TokenType.L_PAREN,
            TokenType.DOT,
        ):
            token.token_type = TokenType.VAR
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def is_plain_name(name: str) -> bool:
    """Whether a name stands for itself in a statement; others must be in double quotes.

    >>> is_plain_name("userid"), is_plain_name("select"), is_plain_name("user id")
    (True, False, False)
    """
    if not name.isascii() or not name.isidentifier():
        return False
    (token,) = StreamgaugeSql().tokenize(name)
    return token.token_type == TokenType.VAR


def parsed(text: str, tokens: list[Token]) -> Statement:
    """The statement that some words of a text are. Raises `SqlError`."""
    return _parsed(text, tokens)


def _parsed(text: str, tokens: list[Token]) -> Statement:
    start, end = tokens[0].start, tokens[-1].end + 1
    try:
        node: Any
        (node,) = SqlParser(dialect=StreamgaugeSql()).parse(tokens, text)
    except ParseError as error:
        token = getattr(error, "token", None) or tokens[-1]
        message = str(error)
        if message.startswith(_OF_SQLGLOT):
            if token.token_type == TokenType.SENTINEL or token.start >= tokens[-1].start:
                token = tokens[-1]
                message = f"the statement ends too early, or {token.text} can't stand here"
            else:
                message = f"{token.text} can't stand here"
        raise SqlError(message, token.start, token.end + 1, text) from None
    except (AttributeError, TypeError, LookupError):
        # sqlglot takes some statements of others' for granted where ours stand.
        raise SqlError("the statement is not understood from here on", start, end, text) from None
    except RecursionError:
        raise SqlError("the expression is nested too deeply; take it apart", start, end, text) from None
    return Statement(text[start:end], start, node)


def _untokenized(text: str, error: TokenError) -> SqlError:
    """Of text that ends within quotes or a comment: where those begin."""
    at, quote = 0, ""
    while at < len(text):
        sign = text[at]
        if sign == "-" and text.startswith("--", at):
            at = text.find("\n", at)
            if at < 0:
                break
        elif text.startswith("/*", at):
            close = text.find("*/", at)
            if close < 0:
                return SqlError("the comment is not closed; write */", at, at + 2, text)
            at = close + 1
        elif sign in "'\"`":
            quote, begin = sign, at
            at = text.find(quote, at + 1)
            if at < 0:
                return SqlError(f"the quote is not closed; write {quote}", begin, begin + 1, text)
        at += 1
    return SqlError(str(error), 0, 1, text)

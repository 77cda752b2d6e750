"""The parser of statements around queries; the queries in them are parsed by `query_parser`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from .nodes import at
from .query_parser import QueryParser
from .statements import (
    CreateAlert,
    CreateAs,
    CreateSource,
    CreateView,
    DeclaredColumn,
    Define,
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
    Terminate,
    Word,
)

SHOWN = ("TOPICS", "STREAMS", "TABLES", "QUERIES", "FUNCTIONS", "VARIABLES")
_LATER = {
    "PAUSE": "PAUSE: end the process; a run with --group resumes where it ended",
    "RESUME": "RESUME: start the same file again with the same --group",
}
_STATEMENTS = (
    *(
        "SELECT",
        "CREATE STREAM",
        "CREATE TABLE",
        "CREATE VIEW",
        "CREATE ALERT",
        "INSERT INTO",
        "SHOW",
        "LIST",
        "PRINT",
        "DESCRIBE",
        "DROP",
    ),
    *("SET", "EXPLAIN", "ASSERT VALUES", "TERMINATE", "RUN SCRIPT", "DEFINE", "UNDEFINE"),
)


def parse_statement(parser: QueryParser) -> Any:
    """The next statement; None at the end. Raises `ParseError`."""
    if not parser._curr:
        return None
    word, token = parser.word(), parser._curr
    if word == "SHOW" or word == "LIST":
        return _show(parser)
    method: Callable[[QueryParser], Node] | None = _PARSERS.get(word)
    if method is not None:
        return method(parser)
    if word in ("SELECT", "WITH", "FROM", "("):
        first, *others = parser.queries()
        return Query(first, tuple(others))
    if word in _LATER:
        parser.raise_error(_LATER[word], token)
    parser.raise_error(f"a statement must begin with one of {', '.join(_STATEMENTS)}, got {token.text}")
    return None


def _define(parser: QueryParser) -> Node:
    parser._advance()
    name = parser.name_of("a variable")
    parser.need("=")
    return Define(name, parser.text_of("the value of a variable"))


def _undefine(parser: QueryParser) -> Node:
    parser._advance()
    return Define(parser.name_of("a variable"))


def _show(parser: QueryParser) -> Node:
    parser._advance()
    token = parser._curr
    if parser.word() not in SHOWN:
        parser.raise_error(f"SHOW must be followed by one of {', '.join(SHOWN)}, got {parser.here()}")
    word = Word(parser.word(), token.start, token.end + 1)
    parser._advance()
    return Show(word)


def _print_topic(parser: QueryParser) -> Node:
    parser._advance()
    named = parser._curr and parser._curr.token_type == TokenType.STRING
    topic = parser.text_of("the topic's name") if named else parser.name_of("a topic")
    beginning = parser.take("FROM", "BEGINNING")
    if parser.is_next("INTERVAL") or parser.is_next("SAMPLE"):
        parser.raise_error("INTERVAL of PRINT: filter the rows of a SELECT instead")
    limit = parser.whole_number("LIMIT") if parser.take("LIMIT") else None
    return Print(topic, beginning, limit)


def _describe(parser: QueryParser) -> Node:
    parser._advance()
    if parser.take("EXTENDED"):
        parser.raise_error("EXTENDED: write DESCRIBE name, or EXPLAIN of its SELECT", parser._prev)
    return Describe(parser.name_of("a stream or table"))


def _drop(parser: QueryParser) -> Node:
    parser._advance()
    kind = "view" if parser.take("VIEW") else _kind(parser, "DROP")
    if_exists = parser.take("IF", "EXISTS")
    name = parser.name_of(f"the {kind}")
    if parser.is_next("DELETE"):
        parser.raise_error("DELETE TOPIC: topics are deleted by Kafka's own tools")
    return Drop(kind, name, if_exists)


def _kind(parser: QueryParser, verb: str) -> str:
    for kind in ("STREAM", "TABLE"):
        if parser.take(kind):
            return kind.lower()
    if parser.word() in _LATER:
        parser.raise_error(_LATER[parser.word()])
    kinds = "STREAM, TABLE, VIEW or ALERT" if verb == "CREATE" else "STREAM, TABLE or VIEW"
    parser.raise_error(f"{verb} must be followed by {kinds}, got {parser.here()}")
    return ""


def _set_option(parser: QueryParser) -> Node:
    parser._advance()
    name = parser.text_of("the setting's name")
    parser.need("=")
    return SetOption(name, parser.text_of("the value"))


def _explain(parser: QueryParser) -> Node:
    token = parser._curr
    parser._advance()
    inner = parse_statement(parser)
    if not isinstance(inner, Query | CreateAs | CreateAlert | InsertSelect):
        parser.raise_error(
            "EXPLAIN explains a SELECT, a CREATE … AS SELECT or an INSERT INTO … SELECT", token
        )
    return Explain(inner)


def _create(parser: QueryParser) -> Node:
    parser._advance()
    replace = parser.take("OR", "REPLACE")
    if parser.is_next("SOURCE"):
        parser.raise_error("SOURCE: all streams and tables over topics are read only; leave the word out")
    if parser.take("ALERT"):
        return _alert(parser, replace)
    if parser.take("VIEW"):
        name = parser.name_of("the view")
        parser.need("AS")
        return CreateView(name, parser.rows_query(), replace)
    kind = _kind(parser, "CREATE")
    there = parser.take("IF", "NOT", "EXISTS")
    name = parser.name_of(f"the {kind}")
    columns: tuple[DeclaredColumn, ...] = ()
    if parser._match(TokenType.L_PAREN):
        columns = tuple(_columns(parser))
    options = _options(parser) if parser.is_next("WITH") else {}
    if parser.take("AS"):
        if columns:
            parser.raise_error("CREATE … AS SELECT gets its columns from the SELECT; leave them out")
        first, *others = parser.queries()
        return CreateAs(kind, name, options, first, replace, there, tuple(others))
    if not options:
        parser.raise_error(
            f"expected WITH (KAFKA_TOPIC='…', VALUE_FORMAT='JSON') or AS SELECT, got {parser.here()}"
        )
    return CreateSource(kind, name, columns, options, replace, there)


def _alert(parser: QueryParser, replace: bool) -> Node:
    if replace:
        parser.raise_error("an alert is not replaced: change the script and run it again", parser._prev)
    name = parser.name_of("the alert")
    parser.need("AS")
    select = parser.query()
    return CreateAlert(name, _options(parser) if parser.is_next("WITH") else {}, select)


def _terminate(parser: QueryParser) -> Node:
    parser._advance()
    token = parser._curr
    if token is not None and parser.take("ALL"):
        return Terminate(Word("", token.start, token.end + 1))
    return Terminate(parser.name_of("a query, or ALL"))


def _run_script(parser: QueryParser) -> Node:
    parser.need("RUN", "SCRIPT")
    return RunScript(parser.text_of("the name of a file"))


def _columns(parser: QueryParser) -> list[DeclaredColumn]:
    columns = []
    while True:
        _no_constraint(parser)
        name = parser.name_of("a column")
        token = parser._curr
        if parser.is_next("AS"):
            parser.raise_error(f"{name} AS: write the expression in the SELECT, or in a CREATE VIEW")
        kind: Any = parser._parse_types(check_func=False, allow_identifiers=False)
        if not isinstance(kind, exp.DataType):
            parser.raise_error(f"expected the type of {name}, got {parser.here()}")
        if "start" not in kind.meta:
            kind.update_positions(token)
        role = ""
        if parser._match(TokenType.PRIMARY_KEY) or parser.take("PRIMARY", "KEY") or parser.take("KEY"):
            role = "key"
        elif parser.is_next("HEADERS") or parser.is_next("HEADER"):
            parser.raise_error("HEADERS: write the stream in Python, with message={'name': 'header:NAME'}")
        elif parser.is_next("METADATA"):
            parser.raise_error(
                "METADATA: leave the column out; every stream has ROWTIME, ROWPARTITION, ROWOFFSET"
            )
        elif parser.take("NOT", "NULL"):
            parser.raise_error("NOT NULL: filter the rows, WHERE … IS NOT NULL", token)
        columns.append(DeclaredColumn(name, kind, role))
        if not parser._match(TokenType.COMMA):
            break
    parser.need(")")
    return columns


def _no_constraint(parser: QueryParser) -> None:
    """Raise for constraints that Flink and RisingWave allow among the columns."""
    if parser.is_next("WATERMARK", "FOR"):
        parser.raise_error(
            "WATERMARK: name the column of the event time, WITH (TIMESTAMP='…'), and how long a window waits "
            "for late rows, WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 5 SECONDS)"
        )
    primary = parser._curr is not None and parser._curr.token_type == TokenType.PRIMARY_KEY
    if primary or parser.is_next("PRIMARY", "KEY"):
        parser.raise_error("PRIMARY KEY must follow the type of its column: id BIGINT PRIMARY KEY")


def _options(parser: QueryParser) -> dict[str, Word]:
    parser.need("WITH")
    parser.need("(")
    options: dict[str, Word] = {}
    while True:
        token = parser._curr
        if token is None:
            parser.raise_error("expected the name of an option, got the end of the statement")
        name = token.text.upper()
        parser._advance()
        if name in options:
            parser.raise_error(f"{name} is allowed once in WITH", token)
        parser.need("=")
        minus = "-" if parser._match(TokenType.DASH) else ""
        value = parser._curr
        if not value or value.token_type not in (
            TokenType.STRING,
            TokenType.NUMBER,
            TokenType.TRUE,
            TokenType.FALSE,
        ):
            parser.raise_error(f"{name} must be a constant, got {parser.here()}")
        parser._advance()
        options[name] = Word(minus + value.text, value.start, value.end + 1)
        if not parser._match(TokenType.COMMA):
            break
    parser.need(")")
    return options


def _insert(parser: QueryParser) -> Node:
    parser._advance()
    parser.need("INTO")
    name = parser.name_of("a stream")
    columns = _column_names(parser)
    if parser.is_next("VALUES"):
        return InsertValues(name, columns, _rows(parser))
    if columns:
        parser.raise_error("INSERT INTO … SELECT gets its columns from the SELECT; leave them out")
    first, *others = parser.queries()
    return InsertSelect(name, first, tuple(others))


def _assert_values(parser: QueryParser) -> Node:
    parser._advance()
    if not parser.is_next("VALUES"):
        parser.raise_error(f"ASSERT must be followed by VALUES, got {parser.here()}")
    parser._advance()
    name = parser.name_of("a stream or table")
    columns = _column_names(parser)
    return InsertValues(name, columns, _rows(parser), expected=True)


def _column_names(parser: QueryParser) -> tuple[Word, ...]:
    """Names in brackets, if there are any."""
    columns: list[Word] = []
    if parser._match(TokenType.L_PAREN):
        while True:
            columns.append(parser.name_of("a column"))
            if not parser._match(TokenType.COMMA):
                break
        parser.need(")")
    return tuple(columns)


def _rows(parser: QueryParser) -> tuple[exp.Tuple, ...]:
    parser.need("VALUES")
    rows = []
    while True:
        token = parser._curr
        parser.need("(")
        values = parser._parse_csv(parser._parse_assignment)
        parser.need(")")
        rows.append(at(exp.Tuple(expressions=values), token))
        if not parser._match(TokenType.COMMA):
            break
    return tuple(rows)


_PARSERS: dict[str, Callable[[QueryParser], Node]] = {
    "PRINT": _print_topic,
    "DESCRIBE": _describe,
    "DROP": _drop,
    "SET": _set_option,
    "EXPLAIN": _explain,
    "CREATE": _create,
    "INSERT": _insert,
    "ASSERT": _assert_values,
    "TERMINATE": _terminate,
    "RUN": _run_script,
    "DEFINE": _define,
    "UNDEFINE": _undefine,
}

"""The SQL dialect, on sqlglot's own extension points: a tokenizer, a parser, and statements of our own.

sqlglot builds the trees of queries and of scalar expressions (`query_parser`); the statements around them are
our own (`statement_parser`, `statements`). A script is split into statements here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, Tokenizer, TokenType

from ..errors import SqlError
from .query_parser import QueryParser
from .statement_parser import parse_statement
from .statements import Statement
from .variables import define, with_variables

_OF_SQLGLOT = ("Invalid expression", "Required keyword", "Expect", "Found multiple", "Cannot", "Unexpected")
"""How sqlglot's own messages begin."""


class SqlTokenizer(Tokenizer):
    """Names in double quotes or backticks keep their case; no statement is read as a single token."""

    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMANDS: ClassVar = set()
    KEYWORDS: ClassVar = {
        name: kind
        for name, kind in {**Tokenizer.KEYWORDS, "BYTES": TokenType.VARBINARY}.items()
        if kind not in (TokenType.COMMAND, TokenType.HINT) and not name.startswith("{")
    }


class SqlParser(QueryParser):
    """The parser of a statement."""

    def _parse_statement(self) -> Any:
        return parse_statement(self)


class StreamgaugeSql(Dialect):
    """The dialect, by sqlglot's name ``streamgaugesql``."""

    NULL_ORDERING = "nulls_are_last"
    tokenizer_class = SqlTokenizer
    parser_class = SqlParser  # type: ignore[assignment]
    Tokenizer = SqlTokenizer
    Parser = SqlParser


def statements_of(text: str) -> list[Statement]:
    """The statements of a script, in order. Raises `SqlError` for the first invalid one.

    >>> [type(one.node).__name__ for one in statements_of("SHOW TOPICS; SELECT a FROM t EMIT CHANGES;")]
    ['Show', 'Query']
    """
    statements, variables = [], dict[str, str]()
    for tokens in split(text):
        statements.append(parsed(text, tokens, variables))
        define(statements[-1].node, variables)
    return statements


def split(text: str) -> list[list[Token]]:
    """The tokens of each statement. Raises `SqlError` for text without tokens, such as an open quote."""
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
        # STRUCT(…) is a value, STRUCT<…> a type; SESSION(…) makes windows, as in Flink.
        glued = token.token_type == TokenType.NUMBER and following.start == token.end + 1
        if glued and following.token_type == TokenType.VAR:  # which would be read as an alias
            raise SqlError(
                "a number must be written in decimal digits, such as 1000 or 1.5e3, without letters and "
                "underscores",
                token.start,
                following.end + 1,
                text,
            )
        values = token.token_type in (TokenType.STRUCT, TokenType.SESSION)
        if values and following.token_type == TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    parts: list[list[Token]] = [[]]
    end = 0
    for token in tokens:
        if any(comment.startswith("+") for comment in token.comments):
            at = text.find("/*+", end)
            if at >= 0:
                raise SqlError("a query takes no hints: leave out /*+ … */", at, at + 3, text)
        end = token.end + 1
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def is_plain_name(name: str) -> bool:
    """Whether a name needs no quotes in a statement; others must be in double quotes.

    >>> is_plain_name("userid"), is_plain_name("select"), is_plain_name("user id")
    (True, False, False)
    """
    if not name.isascii() or not name.isidentifier():
        return False
    (token,) = StreamgaugeSql().tokenize(name)
    return token.token_type == TokenType.VAR


def parsed(
    text: str,
    tokens: list[Token],
    variables: Mapping[str, str] | None = None,
) -> Statement:
    """The statement of some tokens, with ``${name}`` replaced by `variables`. Raises `SqlError`."""
    start, end = tokens[0].start, tokens[-1].end + 1
    try:
        tokens = with_variables(tokens, variables or {}, StreamgaugeSql().tokenize)
    except SqlError as error:
        raise error.of_text(text) from None
    try:
        node: Any
        (node,) = SqlParser(dialect=StreamgaugeSql()).parse(tokens, text)
    except ParseError as error:
        token = getattr(error, "token", None) or tokens[-1]
        message = str(error)
        if message.startswith(_OF_SQLGLOT):
            if token.token_type == TokenType.SENTINEL or token.start >= tokens[-1].start:
                token = tokens[-1]
                message = f"the statement ends too early, or {token.text} is not allowed here"
            else:
                message = f"{token.text} is not allowed here"
        raise SqlError(message, token.start, token.end + 1, text) from None
    except (AttributeError, TypeError, LookupError):
        # sqlglot implicitly accepts some statements of other dialects where ours are expected.
        raise SqlError("the statement can't be parsed from here on", start, end, text) from None
    except RecursionError:
        raise SqlError("the expression is nested too deeply; split it up", start, end, text) from None
    return Statement(text[start:end], start, node)


def _untokenized(text: str, error: TokenError) -> SqlError:
    """The error for text that ends within quotes or a comment, at their beginning."""
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

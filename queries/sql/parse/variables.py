"""Variables of a script: ``DEFINE name = 'value'``, and ``${name}`` in later statements.

A variable is replaced by its value: unchanged within a string or a quoted name, otherwise as the tokens that
the value consists of. ``$${name}`` stands for ``${name}`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot.tokens import Token, TokenType

from ..errors import SqlError
from .statements import Define

_NAMED = re.compile(r"\$(\$?)\{(\w*)\}")


def with_variables(
    tokens: Sequence[Token], variables: Mapping[str, str], words: Callable[[str], list[Token]]
) -> list[Token]:
    """The tokens of a statement with variables replaced; `words` tokenizes a value.

    Raises `SqlError` for a variable that isn't defined.
    """
    return list(_replaced(tokens, variables, words))


def define(node: Any, variables: dict[str, str]) -> None:
    """Update the variables if a statement is a DEFINE or UNDEFINE."""
    if isinstance(node, Define) and node.value is None:
        variables.pop(str(node.name).lower(), None)
    elif isinstance(node, Define):
        variables[str(node.name).lower()] = str(node.value)


def _replaced(
    tokens: Sequence[Token], variables: Mapping[str, str], words: Callable[[str], list[Token]]
) -> Iterator[Token]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) and "${" in token.text:
            token.text = _filled(token, variables)
        elif token.text == "$" and [one.token_type for one in tokens[at + 1 : at + 4 : 2]] == [
            TokenType.L_BRACE,
            TokenType.R_BRACE,
        ]:
            end = tokens[at + 3].end
            for word in words(_value(tokens[at + 2].text, variables, token.start, end + 1)):
                yield Token(word.token_type, word.text, token.line, token.col, token.start, end)
            at += 4
            continue
        yield token
        at += 1


def _filled(token: Token, variables: Mapping[str, str]) -> str:
    """A text with the values of the variables in it."""

    def filled(one: re.Match[str]) -> str:
        return f"${{{one[2]}}}" if one[1] else _value(one[2], variables, token.start, token.end + 1)

    return _NAMED.sub(filled, token.text)


def _value(name: str, variables: Mapping[str, str], start: int, end: int) -> str:
    if name.lower() not in variables:
        raise SqlError(
            f"no variable is called {name}; write DEFINE {name or 'name'} = '…' before, or $${{{name}}} "
            "for the text itself",
            start,
            end,
        )
    return variables[name.lower()]

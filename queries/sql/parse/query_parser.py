"""The parser of queries: sqlglot's own, with the window clauses of four systems, EMIT, and WITHIN in joins.

It knows no functions: each is returned by its name and its arguments, and `scalar_functions` and `aggregates`
define their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import Parser
from sqlglot.tokens import TokenType

from .nodes import MONTHS, UNITS, Emit, Length, WindowClause, WindowedTable, at
from .statements import Word

_NO_ALIASES = ("FINAL", "GLOBAL", "PARTITION", "CHANGES", "SAMPLE", "DELTA", "STREAM")
"""Words that have a meaning after a table in other systems, and would be read as its alias."""
_LENGTHS = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "CUMULATE": ("STEP", "SIZE"), "SESSION": ("GAP",)}
"""The table functions of windows, with their lengths by Flink's names."""
_ONLY_ALL = (
    "{}: streams support only UNION ALL, because the others would have to store every row; to exclude the "
    "rows of another stream, write LEFT ANTI JOIN"
)


class QueryParser(Parser):
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
        TokenType.PARTITION_BY: lambda self: ("partition_by", self._partition_clause()),
    }
    # An arrow accesses a field of a struct, also in arguments of functions.
    LAMBDAS: ClassVar = {TokenType.FARROW: Parser.LAMBDAS[TokenType.FARROW]}
    SUPPORTS_IMPLICIT_UNNEST = False

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Raise a `ParseError` with the beginning of its word."""
        token = token or self._curr or self._prev
        error = ParseError(message)
        error.token = token  # type: ignore[attr-defined]
        raise error

    def _parse_csv(self, parse_method: Any, sep: Any = TokenType.COMMA) -> list[Any]:
        """Like sqlglot's, which accepts two commas as one."""
        items: list[Any] = []
        while True:
            item = parse_method()
            if item is not None:
                items.append(item)
            elif items:
                self.raise_error(f"expected something after the comma, got {self.here()}")
            if not self._match(sep):
                return items
            if item is None:
                self.raise_error("expected something before the comma", self._prev)

    def _parse_bracket(self, this: Any = None) -> Any:
        """Like sqlglot's, and reads Flink's ``MAP['key', value, …]`` as ``MAP('key' := value, …)``."""
        made: Any = super()._parse_bracket(this)
        # Brackets that follow were included in it.
        inner = made
        while isinstance(inner, exp.Bracket) and isinstance(inner.this, exp.Bracket):
            inner = inner.this
        if not isinstance(inner, exp.Bracket) or len(given := inner.expressions) < 2:
            return made
        column = inner.this
        word = column.this if isinstance(column, exp.Column) and not column.table else None
        if word is None or word.args.get("quoted") or word.name.upper() != "MAP" or len(given) % 2:
            self.raise_error("[…] takes one place of an ARRAY, or one key of a MAP", self._prev)
        members = [exp.PropertyEQ(this=a, expression=b) for a, b in zip(given[::2], given[1::2])]
        call = exp.Anonymous(this="MAP", expressions=members)
        call.meta.update(word.meta)
        if inner is made:
            return call
        inner.replace(call)
        return made

    def word(self) -> str:
        """The next word, in upper case."""
        return self._curr.text.upper() if self._curr else ""

    def is_next(self, *words: str) -> bool:
        """Whether these words come next, unquoted."""
        return bool(self._match_text_seq(*words, advance=False))

    def take(self, *words: str) -> bool:
        """Consume these words, if they come next."""
        return bool(self._match_text_seq(*words))

    def need(self, *words: str) -> None:
        """Consume these words. Raises `ParseError` if others come."""
        if not self.take(*words):
            self.raise_error(f"expected {' '.join(words)}, got {self.here()}")

    def here(self) -> str:
        """What comes next, for a message."""
        return self._curr.text if self._curr else "the end of the statement"

    def name_of(self, what: str) -> Word:
        """A name; `what` describes its meaning for a message."""
        token = self._curr
        named: Any = self._parse_id_var(any_token=False)
        if named is None or token is None:
            self.raise_error(f"expected the name of {what}, got {self.here()}")
        return Word(named.name, token.start, token.end + 1)

    def text_of(self, what: str) -> Word:
        """A string in single quotes."""
        token = self._curr
        if not self._match(TokenType.STRING):
            self.raise_error(f"expected {what} in single quotes, got {self.here()}")
        return Word(token.text, token.start, token.end + 1)

    def whole_number(self, what: str) -> int:
        """A whole number from 1 on."""
        token = self._curr
        if not self._match(TokenType.NUMBER) or not token.text.isdigit() or int(token.text) < 1:
            self.raise_error(
                f"{what} must be a whole number ≥ 1, got {token.text if token else self.here()}", token
            )
        return int(token.text)

    def length(self, of_windows: bool = False, offset: bool = False, least: int = 1) -> Length:
        """``1 MINUTE``, ``INTERVAL '1' MINUTE`` or ``'1 minute'``, of at least `least` units.

        Lengths `of_windows` may be months; an `offset` may be 0 or, in quotes, negative.
        """
        token = self._curr
        if token is None:
            self.raise_error("expected a length such as 1 MINUTE, got the end of the statement")
        if self.take("INTERVAL"):
            parts = self.text_of("a number").value.split()
        elif self._match(TokenType.STRING):
            parts = token.text.split()
        else:
            if not self._match(TokenType.NUMBER):
                self.raise_error(f"expected a length such as 1 MINUTE, got {self.here()}")
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
        units = {**UNITS, **(MONTHS if of_windows else {})}
        unit = unit if unit in units else unit.removesuffix("S")
        if unit not in units:
            known = ", ".join(f"{one}S" for one in units)
            self.raise_error(f"a unit must be one of {known}, got {unit_token.text}", unit_token)
        digits = number.removeprefix("-") if offset else number
        if not digits.isdigit() or (int(number) < least and not offset):
            self.raise_error(f"a length must be a whole number of units ≥ {least}, got {number}", token)
        if unit in MONTHS:
            return at(Length(this=0, months=int(number) * MONTHS[unit]), token)
        return at(Length(this=int(number) * UNITS[unit]), token)

    def _partition_clause(self) -> list[Any]:
        """``PARTITION BY column, column``: the key of the messages that a query writes."""
        self._match(TokenType.PARTITION_BY)
        columns = self._parse_csv(self._parse_assignment)
        if not columns:
            self.raise_error(f"PARTITION BY must name a column, got {self.here()}")
        return columns

    def _window_clause(self) -> WindowClause:
        self._advance()
        token = self._curr
        kind = self.word()
        if kind not in ("TUMBLING", "HOPPING", "SESSION"):
            self.raise_error(
                f"a window must be TUMBLING (SIZE 1 MINUTE), HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE) or "
                f"SESSION (5 MINUTES), got {self.here()}"
            )
        self._advance()
        self.need("(")
        parts: dict[str, Any] = {}
        while True:
            if kind == "SESSION" and not parts:
                name = "GAP"
            elif self.take("SIZE"):
                name = "SIZE"
            elif self.take("ADVANCE", "BY"):
                name = "ADVANCE BY"
            elif self.take("GRACE", "PERIOD"):
                name = "GRACE PERIOD"
            elif self.take("OFFSET"):
                name = "OFFSET"
            elif self.take("TIME", "ZONE"):
                name = "TIME ZONE"
            elif self.is_next("RETENTION"):
                self.raise_error(
                    "RETENTION: windows are not kept in a store; leave it out, and set the retention of the "
                    "topic"
                )
            else:
                self.raise_error(
                    f"expected SIZE, ADVANCE BY, OFFSET, TIME ZONE or GRACE PERIOD, got {self.here()}"
                )
            if name in parts:
                self.raise_error(f"{name} is allowed once in a window")
            if name == "TIME ZONE":
                parts[name] = self.text_of("the name of a time zone").value
            else:
                months, least = name in ("SIZE", "ADVANCE BY", "OFFSET"), int(name != "GRACE PERIOD")
                parts[name] = self.length(months, name == "OFFSET", least)
            if not self._match(TokenType.COMMA):
                break
        self.need(")")
        needed = {"TUMBLING": ["SIZE"], "HOPPING": ["SIZE", "ADVANCE BY"], "SESSION": ["GAP"]}[kind]
        if missing := [one for one in needed if one not in parts]:
            self.raise_error(f"{kind} needs {missing[0]}, such as {missing[0]} 1 MINUTE", token)
        places = ("OFFSET", "TIME ZONE") if kind != "SESSION" else ()
        if extra := [one for one in parts if one not in (*needed, *places, "GRACE PERIOD")]:
            self.raise_error(f"{kind} takes no {extra[0]}", token)
        return at(WindowClause(kind=kind, parts=parts), token)

    def _parse_query_modifiers(self, this: Any) -> Any:
        this = super()._parse_query_modifiers(this)
        if isinstance(this, exp.Select) and self.is_next("EMIT"):
            token = self._curr
            self._advance()
            if self.word() not in ("FINAL", "CHANGES"):
                self.raise_error(f"EMIT must be followed by FINAL or CHANGES, got {self.here()}")
            if this.args.get("emit"):
                self.raise_error("EMIT is allowed once in a query", token)
            this.set("emit", at(Emit(this=self.word()), token))
            self._advance()
            return self._parse_query_modifiers(this)
        return this

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        if self._curr and self._curr.token_type != TokenType.IDENTIFIER:
            if self.word() in ("EMIT", "WITHIN"):
                return None
            if self.word() in _NO_ALIASES:
                self.raise_error(
                    f"{self.word()} is not allowed here; to use it as an alias of the table, write AS "
                    "before it"
                )
        return super()._parse_table_alias(alias_tokens)

    def _parse_table(self, *args: Any, **options: Any) -> Any:
        table = self._windowed_table()
        if table is None:
            table = super()._parse_table(*args, **options)
        elif alias := self._parse_table_alias():
            table.set("alias", alias)
        if table is not None and self.is_next("WITHIN"):
            token = self._curr
            self._advance()
            table.set("within", at(Length(this=self.length().this), token))
            if self.is_next("GRACE"):
                self.raise_error(
                    "GRACE PERIOD of a join: write it in the window, WINDOW TUMBLING (SIZE …, GRACE PERIOD …)"
                )
        return table

    def _windowed_table(self) -> Any:
        """``TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))`` or ``TUMBLE(t, ts, …)``; None if it is neither."""
        wrapped = self.is_next("TABLE", "(")
        index = self._index
        if wrapped:
            self.take("TABLE", "(")
        name, token = self.word(), self._curr
        if name not in _LENGTHS or not self._next or self._next.token_type != TokenType.L_PAREN:
            self._retreat(index)
            return None
        self._advance(2)
        if self._next is not None and self._next.token_type == TokenType.FARROW:
            return self._named_window(name, token, wrapped)
        table_word = self.take("TABLE")
        table: Any = self._parse_table_parts()
        partition = None
        if self._match(TokenType.PARTITION_BY):
            partition = self._partition()
        self.need(",")
        zone = None
        if self.take("DESCRIPTOR", "("):
            time = self._parse_column()
            zone = self._zone_of_windows()
            self.need(")")
        elif table_word:
            self.raise_error(f"expected DESCRIPTOR(…) with the time column, got {self.here()}")
        else:
            time = self._parse_column()
            zone = self._zone_of_windows()
        wanted = 1 if name in ("TUMBLE", "SESSION") else 2
        lengths: list[Length] = []
        while self._match(TokenType.COMMA):
            lengths.append(self.length(name != "SESSION", len(lengths) >= wanted))
        self.need(")")
        if wrapped:
            self.need(")")
        if not wanted <= len(lengths) <= wanted + (name != "SESSION"):
            offset = " and an offset" if len(lengths) > wanted and name != "SESSION" else ""
            self.raise_error(
                f"{name} takes {wanted} length{'s'[: wanted - 1]}{offset}, got {len(lengths)}", token
            )
        window = WindowedTable(this=name, time=time, lengths=lengths, partition=partition, zone=zone)
        window = at(window, token)
        table.set("windowed", window)
        return table

    def _named_window(self, name: str, token: Any, wrapped: bool) -> Any:
        """``DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => …``, in any order, up to the end."""
        lengths = (*_LENGTHS[name], *(("OFFSET",) if name != "SESSION" else ()))
        known = ("DATA", "TIMECOL", *lengths)
        given: dict[str, Any] = {}
        partition: Any = None
        zone: Any = None
        while True:
            word = self.word()
            if not self._next or self._next.token_type != TokenType.FARROW:
                self.raise_error(f"name every argument of {name}, or none: {', '.join(known)}")
            if word not in known or word in given:
                problem = "stands twice" if word in given else f"must be one of {', '.join(known)}"
                self.raise_error(f"an argument of {name}, {word}, {problem}")
            self._advance(2)
            if word == "DATA":
                self.take("TABLE")
                given[word] = self._parse_table_parts()
                if self._match(TokenType.PARTITION_BY):
                    partition = self._partition()
            elif word == "TIMECOL":
                self.need("DESCRIPTOR")
                self.need("(")
                given[word] = self._parse_column()
                zone = self._zone_of_windows()
                self.need(")")
            else:
                given[word] = self.length(name != "SESSION", word == "OFFSET")
            if not self._match(TokenType.COMMA):
                break
        self.need(")")
        if wrapped:
            self.need(")")
        if missing := [word for word in known if word not in given and word != "OFFSET"]:
            self.raise_error(f"{name} must have {missing[0]} => …", token)
        window = WindowedTable(
            this=name,
            time=given["TIMECOL"],
            lengths=[given[word] for word in lengths if word in given],
            partition=partition,
            zone=zone,
        )
        given["DATA"].set("windowed", at(window, token))
        return given["DATA"]

    def _zone_of_windows(self) -> str | None:
        """``AT TIME ZONE 'Europe/Helsinki'`` after the time column; None without it."""
        return self.text_of("the name of a time zone").value if self.take("AT", "TIME", "ZONE") else None

    def _partition(self) -> list[Any]:
        """The columns of PARTITION BY; several may be in brackets."""
        if self._match(TokenType.L_PAREN):
            columns = self._parse_csv(self._parse_column)
            self.need(")")
            return columns
        columns = [self._parse_column()]
        while self._curr and self._curr.token_type == TokenType.COMMA and self._is_column_after_comma():
            self._advance()
            columns.append(self._parse_column())
        return columns

    def _is_column_after_comma(self) -> bool:
        if self._next is None or self._next.text.upper() == "DESCRIPTOR":
            return False
        after = self._tokens[self._index + 2 : self._index + 3]
        return not after or after[0].token_type != TokenType.FARROW

    def _named_queries(self) -> list[exp.CTE]:
        """``WITH name AS (SELECT …), …``."""
        self.need("WITH")
        if self.is_next("RECURSIVE"):
            self.raise_error(
                "RECURSIVE: a stream can't be read recursively, because it never ends; leave it out"
            )
        named = []
        while True:
            name: Any = self._parse_id_var(any_token=False)
            if name is None:
                self.raise_error(f"expected the name of a query, got {self.here()}")
            if self._curr and self._curr.token_type == TokenType.L_PAREN:
                self.raise_error("name the columns in the SELECT: expression AS name")
            self.need("AS")
            self.need("(")
            select = self.rows_query()
            self.need(")")
            named.append(exp.CTE(this=select, alias=exp.TableAlias(this=name)))
            if not self._match(TokenType.COMMA):
                return named

    def rows_query(self) -> exp.Select:
        """A named query: a SELECT, whose ``union`` has those that UNION ALL appends."""
        first, *others = self.queries()
        if others:
            first.set("union", others)
        return first

    def query(self) -> exp.Select:
        """A SELECT, with the WITH queries before it."""
        token = self._curr
        first, *others = self.queries()
        if others:
            self.raise_error(
                "UNION ALL is allowed only by itself, or in CREATE STREAM … AS, INSERT INTO or CREATE VIEW",
                token,
            )
        return first

    def queries(self) -> list[exp.Select]:
        """A SELECT, or those of a UNION ALL, each with the WITH queries before the first."""
        token = self._curr
        if self.is_next("WITH"):
            named = self._named_queries()
            selects = self.queries()
            for select in selects:
                select.set("with_", exp.With(expressions=[one.copy() for one in named]))
            return selects
        parsed: Any = self._parse_select() if self._curr else None
        parsed = self._parse_query_modifiers(parsed) if isinstance(parsed, exp.Select) else parsed
        if self._curr and self._curr.token_type in (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT):
            self.raise_error(_ONLY_ALL.format(self.word()))
        if isinstance(parsed, exp.SetOperation):
            return list(self._united(parsed, token))
        if not isinstance(parsed, exp.Select):
            self.raise_error(f"expected a SELECT, got {token.text if token else self.here()}", token)
        return [at(parsed, token)]  # there is no other position to report

    def _united(self, node: Any, token: Any) -> Iterator[exp.Select]:
        """The queries of a UNION ALL, in order."""
        if isinstance(node, exp.Select):
            yield at(node, token)
            return
        if not isinstance(node, exp.Union) or node.args.get("distinct") is not False:
            word = "UNION" if isinstance(node, exp.Union) else type(node).__name__.upper()
            self.raise_error(_ONLY_ALL.format(word), token)
        for name, value in node.args.items():
            if value and name not in ("this", "expression", "distinct"):
                word = {"order": "ORDER BY", "by_name": "BY NAME"}.get(name, name.strip("_").upper())
                self.raise_error(
                    f"{word} of a UNION ALL: write CREATE STREAM … AS SELECT … UNION ALL …, and SELECT from "
                    "that stream",
                    token,
                )
        for side in (node.this, node.expression):
            while isinstance(side, exp.Subquery) and not any(
                value for name, value in side.args.items() if name != "this"
            ):
                side = side.this
            if not isinstance(side, exp.Select | exp.SetOperation):
                self.raise_error("UNION ALL needs a SELECT on both sides", token)
            yield from self._united(side, token)

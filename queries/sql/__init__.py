"""SQL: one more way to write a `Stream`, or a question to a table of sketches. It is no second engine.

A script is parsed by sqlglot (`dialect`), statement by statement, with the positions of all its words kept.
`planner` makes the same `Stream` of a query that its Python would make, and `selection` what its columns and
its HAVING answer of a closed window; `pull_query` asks stored tables. Whatever isn't understood is refused,
with line and column (`errors`).
"""

"""SQL as another way to write a `Stream`, or a question about a table of sketches, not a second engine.

A script is parsed by sqlglot (`dialect`), statement by statement, preserving the positions of all words.
`planner` turns a query into the same `Stream` as the equivalent Python, and `selection` computes its columns
and its HAVING from a closed window's answers; `pull_query` queries stored tables. Anything that isn't
supported is refused, with line and column (`errors`).
"""

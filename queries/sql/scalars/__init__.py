"""Types and scalar functions of SQL as Polars expressions."""

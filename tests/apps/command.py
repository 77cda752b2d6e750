"""The command line as a test runs it."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

SCHEMA = {"at": pl.Datetime("us"), "lang": pl.String, "user": pl.Int64, "tags": pl.List(pl.String)}


Ran = Callable[..., str]

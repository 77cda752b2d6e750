"""Classify web servers' responses: refused logins, and requests for missing paths."""

from __future__ import annotations

import polars as pl

LOGIN_PATHS = (
    r"(?i)(?:^|/)(?:log[-_]?[io]n|signin|sign[-_]in|sessions?|auth(?:enticate|entication)?|oauth2?|token"
    r"|wp-login\.php|xmlrpc\.php|user/login|administrator|account/login|api/login)(?:[./?]|$)"
)
"""Paths where web applications accept passwords."""

_WORDPRESS = r"(?i)/wp-login\.php$"


def refused_requests(method: pl.Expr, path: pl.Expr, status: pl.Expr) -> pl.Expr:
    """Whether a response refuses a login: 401; 403 for a POST or a login path; 200 for WordPress' form.

    Any other 403 is a restricted page, which scanners and ordinary visitors may find.

    >>> import polars as pl
    >>> rows = [("GET", "/a", "401"), ("GET", "/.env", "403"), ("POST", "/", "403"), ("GET", "/login", "200")]
    >>> frame = pl.DataFrame(rows, schema=["method", "path", "status"], orient="row")
    >>> frame.select(refused_requests(*map(pl.col, frame.columns))).to_series().to_list()
    [True, False, True, False]
    """
    posts = (method == "POST").fill_null(False)
    to_login = path.str.contains(LOGIN_PATHS).fill_null(False)
    again = posts & path.str.contains(_WORDPRESS).fill_null(False) & (status == "200")
    return ((status == "401") | ((status == "403") & (posts | to_login)) | again).fill_null(False)


def missing_paths(status: pl.Expr) -> pl.Expr:
    """Whether a response says that the path is missing, or forbidden to the client.

    >>> import polars as pl
    >>> pl.Series("status", ["200", "404", "403", None]).to_frame().select(
    ...     missing_paths(pl.col("status"))
    ... )["status"].to_list()
    [False, True, True, False]
    """
    return status.is_in(["403", "404", "410"]).fill_null(False)

"""Object stores by URL, through fsspec."""

from __future__ import annotations

from typing import Any


def filesystem_of(url: str, **options: Any) -> Any:
    """fsspec's filesystem for a URL, such as ``s3://bucket/table``.

    `options` are the filesystem's own, for an endpoint or credentials; by default, this machine's settings
    apply. Raises `ValueError` if there is no filesystem for the URL.

    >>> filesystem_of("memory://table").protocol
    'memory'
    """
    scheme = url.partition("://")[0]
    try:
        import fsspec

        return fsspec.filesystem(scheme, **options)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{url}: there is no filesystem for {scheme}:// here ({error}); install streamgauge with its "
            "extra 's3', 'gcs' or 'azure' for s3://, gs:// or az://; other fsspec packages provide theirs"
        ) from None

"""Object stores by their URLs, through fsspec."""

from __future__ import annotations

from typing import Any


def filesystem_of(url: str, **options: Any) -> Any:
    """The filesystem of fsspec for a URL, such as ``s3://bucket/table``.

    `options` are the filesystem's own, for an endpoint or credentials; without them those of this machine
    count. Raises `ValueError` if there is none for it.

    >>> filesystem_of("memory://table").protocol
    'memory'
    """
    scheme = url.partition("://")[0]
    try:
        import fsspec

        return fsspec.filesystem(scheme, **options)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{url}: there is no filesystem for {scheme}:// here ({error}); "
            "pip install 'streamgauge[s3]' installs S3's; other fsspec packages provide theirs"
        ) from None

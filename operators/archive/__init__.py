"""Topics kept as Parquet files whose ranges of offsets follow each other without gap or overlap.

A partition's files are a chain: each begins at the offset at which the one before it ends, and is named after
it. So the files themselves say how far the archive is, and no offset is committed anywhere.
"""

"""Topics archived as Parquet files with consecutive ranges of offsets, without gaps or overlaps.

A partition's files form a chain: each begins at the offset at which the one before it ends, and is named
after it. So the files themselves show how far the archive is, and no offset is committed anywhere.
"""

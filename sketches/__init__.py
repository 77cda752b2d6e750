"""What can a few kilobytes store about a million values?

Each family has a folder, here, in `stored` and in `sampling`, with the same file name for the same part:

    sketch.py    one sketch: the public class, with its promised error
    groups.py    many sketches by group number, as in a column of a table of sketches
    store.py     the arrays that store groups
    update.py    the kernels that add rows; samples have jumps.py instead
    images.py    writing, reading and validating bytes
    merge.py     merging two sketches
    estimate.py  answers
    bounds.py    error bounds

A family only has the files that it needs: short parts stay in sketch.py or groups.py. Code shared by several
families is in `core`. Exact aggregates have no sketch.py, because they aren't used singly.
"""

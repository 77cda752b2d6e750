"""What can be kept of a million values in a few kilobytes?

One folder a family, here, in `stored` and in `sampling`, and the same file name for the same part in each:

    sketch.py    one sketch: what a user holds, with the promise
    groups.py    many of them, by group number: what a column of a table of sketches is made of
    store.py     the arrays that groups are kept in
    update.py    the kernels that add rows, where samples have jumps.py
    images.py    bytes, written, read and checked
    merge.py     how two are folded into one
    estimate.py  answers
    bounds.py    how far answers may be off

A family has the files that its parts fill: what is a page long stays in sketch.py or groups.py. What several
families stand on is in `core`. Exact aggregates have no sketch.py, as nobody holds one by itself.
"""

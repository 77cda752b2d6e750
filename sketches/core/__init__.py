"""The basis of every family: the protocol, hashing, columns of values, group numbers."""

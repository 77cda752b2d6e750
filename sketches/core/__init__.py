"""What every family stands on: the protocol, hashing, columns of values, group numbers."""

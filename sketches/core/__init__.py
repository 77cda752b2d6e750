"""The base of every sketch family: the protocol, hashing, columns of values, group numbers."""

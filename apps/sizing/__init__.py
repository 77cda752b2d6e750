"""The machines that a stream needs, computed from measured costs."""

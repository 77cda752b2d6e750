"""JSON messages, scanned into columns by kernels."""

"""Group numbers of rows, and storage for many groups."""

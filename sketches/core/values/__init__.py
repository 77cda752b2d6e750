"""The values in columns: kinds of items, numbers, decimals, points and images of sketches."""

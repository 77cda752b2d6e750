"""Commands over stored tables of sketches."""

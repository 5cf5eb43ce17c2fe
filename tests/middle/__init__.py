"""A man in the middle: attacks × commands × clients × servers. `make middle` runs all of them and prints one table."""

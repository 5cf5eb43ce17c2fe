"""Data types that all packages share, errors, and the run directory. Imports no other package of ciphercost."""

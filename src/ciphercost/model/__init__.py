"""model: The data types that all packages share, errors, and the run directory. Imports nothing else of ciphercost."""

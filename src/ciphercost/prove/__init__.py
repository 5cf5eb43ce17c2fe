"""prove: checks whether data is encrypted: witnesses, at-rest tests, column checks, and what stored values leak."""

"""prove: Is it encrypted? Witnesses, at-rest tests, checks of columns, what stored values give away."""

"""Turn a spec into a plan: check cells, parse targets, expand the matrix, compute the schedule. Starts nothing."""

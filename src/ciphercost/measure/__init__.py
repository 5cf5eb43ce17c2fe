"""measure: runs slices of load in order and records what the host did meanwhile. No statistics."""

"""measure: Slices of load in order, with what the host did meanwhile. No statistics."""

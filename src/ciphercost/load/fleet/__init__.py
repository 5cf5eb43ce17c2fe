"""Load from many agents at once: each on a node of a Ray cluster, started together, and merged into one answer."""

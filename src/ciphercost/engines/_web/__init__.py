"""Web servers: what they have in common. No engine."""

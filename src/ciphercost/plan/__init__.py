"""plan: TODO."""

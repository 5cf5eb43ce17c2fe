"""load: TODO."""

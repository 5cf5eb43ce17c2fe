"""provision: TODO."""

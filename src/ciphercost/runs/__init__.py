"""runs: TODO."""

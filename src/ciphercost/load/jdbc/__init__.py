"""jdbc: TODO."""

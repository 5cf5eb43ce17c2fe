"""importers: TODO."""

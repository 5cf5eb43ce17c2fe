"""estimate: Slices -> estimates with intervals, warnings and verdicts. Pure, but for reading a record."""

"""importers: Other tools' output -> readings of two arms."""

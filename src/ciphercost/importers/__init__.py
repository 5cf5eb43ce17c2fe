"""Import other tools' output as readings of two arms."""

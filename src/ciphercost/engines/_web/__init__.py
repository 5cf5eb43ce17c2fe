"""What the web servers share. Not an engine."""

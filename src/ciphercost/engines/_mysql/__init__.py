"""What MySQL and MariaDB share. Not an engine."""

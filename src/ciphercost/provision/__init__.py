"""provision: starts, fills and copies the servers of both arms, and manages scratch schemas and passwords."""

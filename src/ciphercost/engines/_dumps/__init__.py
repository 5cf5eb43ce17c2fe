"""Shared by the engines that load dumps: what kind of dump a file is, and why a load failed, without the user's data. Not an engine."""

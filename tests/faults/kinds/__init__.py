"""Kinds of faults: each file has FAULTS, a tuple of `world.Fault`."""

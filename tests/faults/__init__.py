"""Faults in real runs: what breaks, at a random moment, and what is left of the run. `make faults` prints one table.

A trial starts `ciphercost run` as a user does, breaks one thing at a moment drawn from a seed, waits for the end, and
judges: how it ended, whether the record is intact, what was left before and after `ciphercost clean`, whether a number came
from a damaged block, and whether `ciphercost resume` finds the undisturbed cost. Each file of `kinds` has faults.
"""

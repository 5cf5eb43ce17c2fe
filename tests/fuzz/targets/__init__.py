"""What is fuzzed; see the package above."""

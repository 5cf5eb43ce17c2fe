"""Fuzzing of everything that reads what somebody else wrote: `make fuzz`. One file of `targets` for each parser.

A target is a module with `parse(data, place)`, which feeds bytes to a parser (`place` is a directory of its own for files), and
`seeds(place)`, bytes that begin the corpus. A CiphercostError is an answer; any other exception, a hang of 10 s and memory
beyond 256 MB are findings.
"""

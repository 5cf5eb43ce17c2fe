"""The Python agent: it speaks the protocol of PROTOCOL.md and makes load with one of Python's drivers. Standard library only."""

NAME = "ciphercost-agent-python"
VERSION = "0.1.0"

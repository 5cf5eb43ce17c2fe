"""ciphercost: what encryption costs a database or web server, here, proven, with an interval."""

__version__ = "0.1.0"

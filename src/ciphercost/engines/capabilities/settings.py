"""Capability: the server takes your own settings, by `--setting`."""

from __future__ import annotations

from ciphercost.engines.capabilities import Capability


class TakesSettings(Capability):
    """A database server that ciphercost starts with your settings added to its own."""

    missing = "takes no --setting"

    kept_settings: str
    """Regular expression of settings that `--setting` may not change: where the server listens, its files, who may log
    in.

    Names are in lower case, with `_` for `-`.
    """

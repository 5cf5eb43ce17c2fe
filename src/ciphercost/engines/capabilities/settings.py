"""settings: servers whose own settings the user may set with `--setting`."""

from __future__ import annotations

from ciphercost.engines.capabilities import Capability


class TakesSettings(Capability):
    """A database server that is started here with the user's settings beside ours."""

    missing = "takes no --setting"

    kept_settings: str
    """Names, lower case with `_` for `-`, that `--setting` may not set, as a pattern: where the server listens, its files, who may log in."""

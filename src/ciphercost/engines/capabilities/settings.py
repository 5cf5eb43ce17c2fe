"""Capability: the server takes your own settings, by `--setting`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ciphercost.engines.capabilities import Capability

FILES_AND_LOGINS = "ciphercost decides where its server listens, where it stores files and who may log in; remove it"
"""Why a setting of `TakesSettings.kept_settings` can't be changed. User-visible."""


CLIENT_CERTIFICATES = "client-cert"
"""The factor that decides whether a server asks for client certificates, and of which authority."""


class Decided(msgspec.Struct, frozen=True):
    """Settings that `--setting` may not change, because a cell has another way to choose them."""

    names: str
    """Regular expression of their names, in lower case, with `_` for `-`."""
    factor: str = ""
    """The factor that chooses them; empty: the mechanism itself."""
    mechanism: str = "tls"
    value: str = ""
    """The factor's value, if the setting's own value does not say it."""
    why: str = ""
    """What to do instead, where no factor does the same. User-visible."""
    values: str = ".*"
    """Regular expression of the values that may not be given; all others may."""


class TakesSettings(Capability):
    """A server that ciphercost starts with your settings added to its own."""

    missing = "takes no --setting"

    kept_settings: str
    """Regular expression of settings that `--setting` may not change: where the server listens, its files, who may log
    in.

    Names are in lower case, with `_` for `-`.
    """
    setting_example: str = "shared_buffers=1GB"
    decided_settings: Sequence[Decided] = ()
    """Settings that a factor decides, or something else that a user can choose."""

    def malformed(self, name: str, value: str) -> str:  # noqa: ARG002
        """Return why this server can't be given the value, whatever it means; empty: it can. User-visible. Pure."""
        return ""


def canonical(name: str) -> str:
    """Canonical spelling of a setting's name: `bind_address` for `Bind-Address`. Pure."""
    return name.lower().replace("-", "_")


_STAMP = re.compile(
    r"^(?:\d{4}[-/]\d\d[-/]\d\d[T ][\d:.]+Z?(?: \w+)?\s*|\[\w+\]\s*|\(?\d+(?:#\d+)?\)?\s*:?\s+|\d+#\d+:\s*"
    r"|(?:FATAL|ERROR|LOG|WARNING):\s*|config : parsing \[[^]]*\] : |\[(?:ERROR|Warning|MY-\d+|Server)\]\s*)+"
)
"""What servers print before their message: time, process, level, subsystem and the line of a configuration that the user never saw."""
_LINE = re.compile(r" in \S+:\d+$")
_JSON = re.compile(r'"msg":"((?:[^"\\]|\\.)*)"')


SYNTAX = re.compile("(?i)syntax error")
"""In the log of a server that can't read its configuration and does not repeat the line."""


def message(line: str) -> str:
    """Return a log line without its time, process, level and place. Pure."""
    if match := _JSON.search(line):
        line = json.loads(f'"{match[1]}"')
    return _LINE.sub("", _STAMP.sub("", line.strip())).rstrip(".")


def blamed(settings: Mapping[str, str], lines: Iterable[str]) -> str:
    """Return `--setting NAME=VALUE: ` and the first message in which a server that did not start names this setting, or else its
    value; empty: it names none of them. `lines`: the end of its log. Pure.
    """
    messages = [message(line) for line in lines]
    known = {re.compile(rf"(?<![\w.]){re.escape(canonical(name))}(?![\w])"): name for name in settings}
    for words in messages:
        for pattern, name in known.items():
            if pattern.search(canonical(words)):
                return f"--setting {name}={settings[name]}: {words}"
    for words in messages:
        for name, value in settings.items():
            if f'"{value}"' in words or f"'{value}'" in words:
                return f"--setting {name}={value}: {words}"
    if any(SYNTAX.search(words) for words in messages):
        given = " ".join(f"--setting {name}={value}" for name, value in settings.items())
        return f"{given}: {next((words for words in messages if words and not SYNTAX.search(words)), messages[-1])}"
    return ""

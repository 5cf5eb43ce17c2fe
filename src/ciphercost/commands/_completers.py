"""What each argument and option offers to a shell's completion: functions for click's `shell_complete`.

Each takes (context, parameter, the beginning of a word) and returns the words that begin so. Importing this module is
quick, because every command does it; the names are read only when a shell asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciphercost.model.grants import GRANTS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ciphercost.commands._names import Names

Completer = Callable[[click.Context, click.Parameter, str], list["CompletionItem"]]
VARIABLE = "_CIPHERCOST_COMPLETE"
"""The environment variable by which a completion script asks for words. Its value is e.g. `bash_complete`."""
MOST_TITLE = 60
"""Letters of a description beside a word."""


def _items(words: Iterable[tuple[str, str]], begin: str) -> list[CompletionItem]:
    """Those (word, description) that begin so."""
    from click.shell_completion import CompletionItem

    short = (
        (word, text if len(text) <= MOST_TITLE else f"{text[:MOST_TITLE].rstrip()}…")
        for word, text in words
        if word.startswith(begin)
    )
    return [CompletionItem(word, help=text or None) for word, text in short]


def _plain(words: Iterable[str], begin: str) -> list[CompletionItem]:
    return _items(((word, "") for word in words), begin)


def _names() -> Names:
    from ciphercost.commands import _names

    return _names.names()


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def files(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(begin, type="file")]


def directories(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(begin, type="dir")]


def runs(context: click.Context, parameter: click.Parameter, begin: str) -> list[CompletionItem]:
    """`latest`, ids below ./runs with their cells' names, and directories."""
    from ciphercost.model import run_directory

    if "/" in begin or begin.startswith("."):
        return directories(context, parameter, begin)
    base = Path("runs")
    known = [str(path.relative_to(base)) for path in run_directory.runs(base)][::-1]
    here = [path.parent.name for path in Path().glob("*/plan.json")]
    given = {str(argument) for argument in _given(context, parameter)}
    wanted = [*([run_directory.LATEST] * bool(known)), *known, *sorted(here)]
    return _plain((name for name in wanted if name not in given), begin) or directories(context, parameter, begin)


def runs_or_files(context: click.Context, parameter: click.Parameter, begin: str) -> list[CompletionItem]:
    """Runs; files and directories if no run's name begins so."""
    items = runs(context, parameter, begin)
    return files(context, parameter, begin) if all(item.type == "dir" for item in items) else items


def _given(context: click.Context, parameter: click.Parameter) -> Iterable[object]:
    given = context.params.get(parameter.name or "")
    return [*(given if isinstance(given, tuple) else ()), *context.args]


# ── engines, mechanisms, workloads ────────────────────────────────────────────────────────────────────────────────────


def engines(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    return _items(((name, engine["title"]) for name, engine in _names()["engines"].items()), begin)


def mechanisms(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    return _items(((name, mechanism["title"]) for name, mechanism in _names()["mechanisms"].items()), begin)


def targets(context: click.Context, parameter: click.Parameter, begin: str) -> list[CompletionItem]:
    """ENGINE:MECHANISM, or a spec file."""
    specs = [str(path) for path in Path().glob("*.toml")]
    items = [*_targets(begin), *_plain(sorted(specs), begin)]
    return items or files(context, parameter, begin)


def proof_targets(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    """ENGINE:MECHANISM, or the beginning of a URL."""
    return [*_targets(begin), *_plain((f"{scheme}://" for scheme in _names()["schemes"]), begin)]


def _targets(begin: str) -> list[CompletionItem]:
    """Engines with their colon; once only one engine is left, all its mechanisms, so that no shell adds a space too early."""
    known = _names()["engines"]
    before, colon, _ = begin.partition(":")
    engine, at, version = before.partition("@")
    fit = [name for name in known if name == engine or (name.startswith(engine) and not colon and not at)]
    if len(fit) != 1:
        return _plain((f"{name}:" for name in fit), begin)
    return _plain((f"{fit[0]}{at}{version}:{mechanism}" for mechanism in known[fit[0]]["mechanisms"]), begin)


def _asked(context: click.Context) -> list[tuple[str, str]]:
    """(engine, mechanism) of every target on the command line so far; the mechanism is empty for `calibrate`."""
    given = context.params.get("targets") or context.params.get("target") or context.params.get("engine") or ()
    # Click puts arguments into `params` only if the line so far is complete, which it isn't behind an option's name.
    texts = [given, *context.args] if isinstance(given, str) else [*given, *context.args]
    return [(engine.partition("@")[0], mechanism) for engine, _, mechanism in (text.partition(":") for text in texts)]


def workloads(context: click.Context, _: click.Parameter, begin: str) -> list[CompletionItem]:
    """All workloads, or those in the language of the given engines."""
    known = _names()
    wanted = {known["engines"][engine]["language"] for engine, _ in _asked(context) if engine in known["engines"]}
    fit = {
        name: workload["title"]
        for name, workload in known["workloads"].items()
        if not wanted or wanted.intersection(workload["languages"])
    }
    own = sorted(str(path) for path in Path().glob("*.toml"))
    return [*_items(fit.items(), begin), *_plain(own, begin)]


def log_formats(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    """Formats of servers' logs."""
    from ciphercost.importers import logs

    return _plain(logs.names(), begin)


def settings(context: click.Context, _: click.Parameter, begin: str) -> list[CompletionItem]:
    """`NAME=VALUE` for --set: options of the given mechanisms and workload. A number is offered as its default."""
    values_by_name = _settings(context)
    name, equals, _rest = begin.partition("=")
    fit = (
        [name]
        if equals and name in values_by_name
        else [setting for setting in values_by_name if setting.startswith(name) and not equals]
    )
    if len(fit) != 1:
        return _plain((f"{setting}=" for setting in fit), begin)
    return _plain((f"{fit[0]}={value}" for value in values_by_name[fit[0]] or [""]), begin)


def dimensions(context: click.Context, _: click.Parameter, begin: str) -> list[CompletionItem]:
    """`NAME=A,B…` for --matrix: the value behind the last comma."""
    values_by_name = _settings(context)
    name, equals, rest = begin.partition("=")
    if not equals:
        return _plain((f"{setting}=" for setting in values_by_name), begin)
    before, comma, _rest = rest.rpartition(",")
    taken = set(before.split(","))
    return _plain(
        (f"{name}={before}{comma}{value}" for value in values_by_name.get(name, ()) if value and value not in taken),
        begin,
    )


def _settings(context: click.Context) -> dict[str, list[str]]:
    """Values by name."""
    known = _names()
    values_by_name: dict[str, list[str]] = {}
    for engine, mechanism in _asked(context):
        usual = known["engines"][engine]["workload"] if engine in known["engines"] else ""
        workload = context.params.get("workload") or usual
        if mechanism in known["mechanisms"]:
            values_by_name |= known["mechanisms"][mechanism]["factors"]
        if workload in known["workloads"]:
            values_by_name |= known["workloads"][str(workload)]["parameters"]
    return values_by_name


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def words(*choices: str) -> Completer:
    """These words."""

    def complete(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
        return _plain(choices, begin)

    return complete


def clients(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    """What can make the load."""
    return _plain(_names()["clients"], begin)


def studies(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    return _items([*_names()["studies"].items(), ("all", "every study, one after the other")], begin)


def listed(context: click.Context, parameter: click.Parameter, begin: str) -> list[CompletionItem]:
    """The second argument of `list`: names of the table that the first one names."""
    known, what = _names(), context.params.get("what")
    if what == "runs":
        return runs(context, parameter, begin)
    tables: dict[str, dict[str, str]] = {
        "engines": {name: engine["title"] for name, engine in known["engines"].items()},
        "mechanisms": {name: mechanism["title"] for name, mechanism in known["mechanisms"].items()},
        "workloads": {name: workload["title"] for name, workload in known["workloads"].items()},
        "studies": known["studies"],
        "grants": dict.fromkeys(GRANTS, ""),
    }
    return _items(tables.get(str(what), {}).items(), begin)


def lists(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    return _plain(_names()["lists"], begin)


def formats(context: click.Context, _: click.Parameter, begin: str) -> list[CompletionItem]:
    """Formats of this command."""
    return _plain(_names()["formats"].get(context.info_name or "", ()), begin)


def needs(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    """Words of `report --need`, after the last comma."""
    before, comma, _rest = begin.rpartition(",")
    taken = before.split(",")
    return _plain((f"{before}{comma}{word}" for word in _names()["needs"] if word not in taken), begin)


def hops(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    return _items(_names()["hops"].items(), begin)

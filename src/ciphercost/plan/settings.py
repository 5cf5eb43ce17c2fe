"""Server settings of a cell (`--setting`): which the server takes, and what decides the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciphercost import mechanisms
from ciphercost.engines.capabilities.settings import FILES_AND_LOGINS, Decided, TakesSettings, canonical
from ciphercost.host import tls_names
from ciphercost.load.redact import holds_secret
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec

if TYPE_CHECKING:
    from ciphercost.engines import Engine

_VERSION = re.compile(r"(?i)(?:TLS|SSL)[ _]?v?1(?:[._]([0-3]))?(?![\d.])")
GROUPS = {"p256": "prime256v1|secp256r1", "p384": "secp384r1"}
"""Other names of groups, beside those of `tls_names.GROUPS`."""


def check(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError if the engine takes no settings, or a setting is malformed, secret or decided otherwise."""
    first = next(iter(cell.settings))
    if cell.url:
        raise UsageError(
            f"--setting {first} does not work with --url: ciphercost changes no setting of your server; set it there yourself, where it "
            "holds for both arms, and remove --setting"
        )
    if not isinstance(engine, TakesSettings):
        reason = (
            "is embedded in the agent, so there is no server to take settings"
            if engine.embedded
            else "takes no settings of yours: ciphercost starts it with its defaults"
        )
        raise UsageError(f"--setting {first}: {cell.engine} {reason}; remove --setting")
    for name, value in cell.settings.items():
        if not re.fullmatch(r"[A-Za-z][\w.-]*", name) or not value or "\n" in value:
            raise UsageError(
                f"--setting {name}={value}: write NAME=VALUE with the server's own name, e.g. {engine.setting_example}"
            )
        if reason := decided(cell, engine, name, value):
            raise UsageError(f"--setting {name}: {reason}")
        if re.fullmatch(engine.kept_settings, canonical(name)):
            raise UsageError(f"--setting {name}: {FILES_AND_LOGINS}")
        if holds_secret(canonical(name), value):
            raise UsageError(
                f"--setting {name}: its value is a secret. Every user of this machine can read command lines, and the run records its "
                "settings; remove it"
            )
        if reason := engine.malformed(name, value):
            raise UsageError(f"--setting {name}: {reason}")
    if len({canonical(name) for name in cell.settings}) < len(cell.settings):
        raise UsageError("--setting: a setting is given twice in two spellings; remove one")


def decided(cell: CellSpec, engine: Engine, name: str, value: str) -> str:
    """Return what decides a setting instead of `--setting`, and what to write; empty: nothing does."""
    known = canonical(name)
    rows = engine.decided_settings if isinstance(engine, TakesSettings) else ()
    for row in rows:
        if re.fullmatch(row.names, known) and re.fullmatch(row.values, value):
            return _instead(cell, engine, row, value)
    for mechanism_name in mechanisms.of(engine):
        mechanism = mechanisms.get(mechanism_name)
        # A control compares a setting that is free in all other cells.
        if mechanism.layer == "control" and cell.mechanism != mechanism_name:
            continue
        for pattern, factor in mechanism.decided_settings.items():
            if re.fullmatch(pattern, known):
                return _instead(cell, engine, Decided(pattern, factor, mechanism_name), value)
    return ""


def _instead(cell: CellSpec, engine: Engine, row: Decided, value: str) -> str:
    if row.why:
        return row.why
    title = f"{cell.engine}:{row.mechanism}"
    here = cell.mechanism == row.mechanism
    if not row.factor and mechanisms.get(row.mechanism).layer == "control":
        return f"{title} compares its values; remove it"
    if not row.factor:
        decides = f"ciphercost decides it in {title}, where it is on in the encrypted arm and off in the plain one"
        return f"{decides}; remove it" if here else f"{decides}; run {title} instead"
    option = _option(row, value, engine)
    run = f"write {option}" if here else f"run {title} {option}"
    refusal = _refusal(row, option, engine)
    if refusal:
        return f"ciphercost decides it by the factor {row.factor} of {row.mechanism}. {refusal}; remove it"
    return f"ciphercost decides it by the factor {row.factor} of {row.mechanism}; {run} instead"


def _option(row: Decided, value: str, engine: Engine) -> str:
    """Return the option that means the same: `--set version=1.2`, or one that lists the factor's values. Pure."""
    mechanism = mechanisms.get(row.mechanism)
    (factor,) = (candidate for candidate in mechanism.factors if candidate.name == row.factor)
    named, more = _translated(row, value)
    spelt = {choice: choice for choice in factor.values if choice} | dict(factor.aliases)
    spelling = value.lower().replace("_", "-")
    named = [choice for choice in named if choice in factor.values] or [
        choice for name, choice in spelt.items() if name.replace("_", "-") == spelling
    ]
    if len(named) == 1:
        return f"--set {row.factor}={named[0]}{more}"
    if named:
        return f"--matrix {row.factor}={','.join(named)}{more}"
    values = [
        choice for choice in factor.values if choice and not _refusal(row, f"--set {row.factor}={choice}", engine)
    ]
    return f"--set {row.factor}={'|'.join(values) if values else 'VALUE'}"


def _translated(row: Decided, value: str) -> tuple[list[str], str]:
    """Return the factor's values that a server's own value names, and an option that they need. Pure."""
    if row.factor == "version":
        return list(dict.fromkeys(f"1.{minor or 0}" for minor in _VERSION.findall(_allowed(value)))), ""
    if row.factor == "group":
        names = {name: f"{text}|{GROUPS.get(name, text)}" for name, text in tls_names.GROUPS.items()}
        return [name for name, text in names.items() if re.search(rf"(?i)(?<!\w)(?:{text})(?!\w)", value)], ""
    if row.factor == "cipher" and row.mechanism == "tls":
        words = re.split(r"[:,;\s\"']+", value)
        new = [name for name, text in tls_names.SUITES_13.items() if text in words]
        old = {
            name: text.replace("{}", "(?:RSA|ECDSA)")
            for name, text in (tls_names.SUITES_12 | tls_names.SUITES_CBC).items()
        }
        older = [name for name, text in old.items() if any(re.fullmatch(text, word) for word in words)]
        return (new, "") if new or not older else (older, " --set version=1.2")
    if row.factor == "resumption" and re.fullmatch(r"(?i)off|none|no|0|false", value):
        return ["off"], ""
    return [row.value] if row.value else [], ""


def _allowed(value: str) -> str:
    """Leave out the versions that a list forbids: `-TLSv1.1`, `!TLSv1`."""
    return re.sub(r"[-!][A-Za-z]+v?[\d._]*", "", value)


def _refusal(row: Decided, option: str, engine: Engine) -> str:
    """Return why this engine can't have what the option asks for; empty: it can, or the option leaves the value open."""
    if "|" in option or not option.startswith("--set "):
        return ""
    factors = dict(pair.split("=", 1) for pair in re.findall(r"--set (\S+)", option))
    mechanism = mechanisms.get(row.mechanism)
    try:
        full = mechanism.check(factors)
        mechanism.fits(engine, full)
        engine.check_factors(row.mechanism, full, "")
    except UsageError as error:
        return str(error)
    return ""

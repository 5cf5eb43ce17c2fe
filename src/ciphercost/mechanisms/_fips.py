"""FIPS mode as a factor of `tls`: what it refuses, and the settings of a server in it and out of it.

Both values pin the key exchange, so that cells which differ in `fips` alone negotiate the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import fips
from ciphercost.host.launch import VARIABLE
from ciphercost.host.pki import Pki
from ciphercost.host.run_ownership import own_file
from ciphercost.host.tls_names import GROUPS, OLD, WEAK
from ciphercost.mechanisms import Factor
from ciphercost.model.errors import UsageError

GROUP = "p256"
"""The key exchange group of both values, unless the cell names one."""
UNAPPROVED_GROUPS = ("x25519",)
"""Groups that neither OpenSSL's FIPS provider nor Go offers in FIPS mode."""

FACTOR = Factor(
    "fips",
    ("", fips.ON, fips.OFF),
    f"whether the server is in FIPS mode: on needs library={fips.LIBRARY} (Caddy: its own), and off is the same server without it; "
    f"group is then {GROUP} unless you name one; empty: nothing is changed or proven",
    acts="handshake",
)


def check(engine: Engine, factors: Mapping[str, str]) -> None:
    """Refuse what has no FIPS mode, and what FIPS mode does not allow. Raises UsageError."""
    mode, library, tls = factors["fips"], factors["library"], HasTls.of(engine)
    if not mode:
        return
    if tls.no_fips:
        raise UsageError(f"fips={mode}: {tls.no_fips}; leave fips out")
    if not tls.own_fips and library != fips.LIBRARY:
        reason = f"there is none for library={library}" if library else "the server's own may have none"
        raise UsageError(
            f"fips={mode}: ciphercost brings OpenSSL's FIPS provider with the library, and {reason}; write --set library={fips.LIBRARY}"
        )
    if mode == fips.OFF:
        return
    for name, refused, instead in (
        ("version", OLD, "1.2 or 1.3"),
        ("cipher", ("chacha20",), "aes256-gcm or aes128-gcm"),
        ("group", UNAPPROVED_GROUPS, "p256 or p384"),
        ("certificate", WEAK, "rsa2048 or larger"),
    ):
        if factors[name] in refused:
            raise UsageError(
                f"{name}={factors[name]}: a server in FIPS mode (fips={mode}) does not allow it; write {name}={instead}"
            )


def pinned(factors: Mapping[str, str]) -> dict[str, str]:
    """Return the factors with the key exchange group that FIPS mode, or its reference, has where the cell names none. Pure."""
    return {**factors, "group": factors.get("group") or GROUP} if factors.get("fips") else dict(factors)


def settings(engine: Engine, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
    """Return what a server needs besides its TLS settings; {} if nothing is asked. `factors`: as `pinned` returns them.

    May fetch the provider.
    """
    if not (mode := factors["fips"]):
        return {}
    if variables := own_variables(engine, mode):
        return {f"{VARIABLE}{name}": value for name, value in variables.items()}
    group = factors["group"]
    text = fips.configuration(mode, GROUPS[group])
    configured = own_file(pki.directory / f"openssl-fips-{mode}-{group}.cnf", text)
    return {f"{VARIABLE}{name}": value for name, value in fips.variables(configured).items()}


def own_variables(engine: Engine, mode: str) -> dict[str, str]:
    """Return the environment variables by which a server without OpenSSL switches it on or off; {}: it has OpenSSL. Pure."""
    return {name: value.format(mode) for name, value in HasTls.of(engine).own_fips.items()}

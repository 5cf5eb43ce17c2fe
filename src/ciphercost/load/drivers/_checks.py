"""Refuses what a driver, or its agent, can't do, before anything starts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.host.tls_names import POST_QUANTUM_KEYS
from ciphercost.load.drivers import Driver, Option
from ciphercost.load.program import Program
from ciphercost.model.constrained_types import DIRECT
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec

VERSIONS = ("1.3", "1.2")
"""TLS versions that every driver has."""


def check(
    cell: CellSpec, driver: Driver, program: Program, options: Mapping[str, str], factors: Mapping[str, str]
) -> None:
    """Raises UsageError. `options`: the driver's, which `--set` gives; `factors`: the mechanism's, with defaults filled in."""
    known = {option.name: option for option in driver.options}
    for name, value in options.items():
        _check_option(known[name], value)
    scripts = [script for _, _, script in program.transactions]
    if any(statement.sql.split(maxsplit=1)[:1] == ["THINK"] for script in scripts for statement in script.statements):
        raise UsageError(
            f"workload {program.name} has think time, which the agent of {driver.name} does not support; remove --client {cell.client}"
        )
    if cell.mechanism == "tls":
        _check_tls(cell, driver, factors)


def _check_option(option: Option, value: str) -> None:
    if option.values == ("number",):
        if not value.isdecimal():
            raise UsageError(f"{option.name}={value}: must be an integer from 0 on")
    elif value not in option.values:
        raise UsageError(f"{option.name} can't be '{value}': {nearest(value, option.values)}")


def _check_tls(cell: CellSpec, driver: Driver, factors: Mapping[str, str]) -> None:
    """Raises UsageError for a factor of TLS that the driver does not have."""
    remove = f"or remove --client {cell.client}"
    if factors.get("group"):
        raise UsageError(
            f"group={factors['group']}: {driver.name} does not report the negotiated group; remove group, {remove}"
        )
    if factors.get("certificate") in POST_QUANTUM_KEYS:
        raise UsageError(
            f"certificate={factors['certificate']}: the drivers' TLS libraries do not all know ML-DSA; leave it out, {remove}"
        )
    if factors.get("resumption", "off") != "off":
        raise UsageError(
            f"resumption={factors['resumption']}: {driver.name} does not report whether a session was resumed; leave resumption off, {remove}"
        )
    version = factors["version"]
    if version not in VERSIONS:
        raise UsageError(f"version={version}: {driver.name} has TLS 1.2 and 1.3; write version=1.2, {remove}")
    if "cipher" in cell.factors and version not in driver.cipher:
        other = f"write version={driver.cipher[0]}" if driver.cipher else "remove cipher"
        raise UsageError(
            f"cipher={factors['cipher']}: {driver.name} can't be told which cipher suite of TLS {version} to use; {other}, {remove}"
        )
    if (verify := factors["verify"]) not in driver.verify:
        raise UsageError(
            f"verify={verify}: {driver.name} has no such setting; write verify={driver.verify[0]}, {remove}"
        )
    if factors.get("negotiation") == DIRECT and not driver.at_once:
        raise UsageError(
            f"negotiation={DIRECT}: {driver.title} can't begin TLS with the first byte; leave it out, {remove}"
        )
    if (binding := factors.get("channel-binding")) and binding not in driver.binding:
        raise UsageError(
            f"channel-binding={binding}: {driver.name} has no setting for channel binding; leave it out, {remove}"
        )

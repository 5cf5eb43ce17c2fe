"""What makes a cell's load, by the word of `--client`: the Rust agent, a JDBC driver, or a driver of another language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ciphercost.load import drivers
from ciphercost.load.drivers import _checks
from ciphercost.load.jdbc import drivers as jdbc_drivers
from ciphercost.load.jdbc import options as jdbc
from ciphercost.load.program import Program
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec

RUST, JDBC = jdbc.RUST, jdbc.WORD
"""The words for the Rust agent, which is the default, and for the Java agent with a JDBC driver."""
Driver = jdbc_drivers.Driver | drivers.Driver
"""A version of a driver that makes load instead of the Rust agent."""


def words() -> list[str]:
    """What `--client` may begin with."""
    return [RUST, JDBC, *drivers.names()]


def by_jdbc(cell: CellSpec) -> bool:
    """Whether a JDBC driver makes the cell's load. Pure."""
    return bool(cell.driver) or cell.client.partition(":")[0] == JDBC


def asked(cell: CellSpec) -> bool:
    """Whether a driver makes the cell's load, instead of the Rust agent. Pure."""
    return bool(cell.client not in ("", RUST) or cell.driver)


def option(cell: CellSpec) -> str:
    """The option that asked for the cell's driver, to name it in an error. Pure."""
    return f"--client {cell.client}" if cell.client else f"--driver {cell.driver}"


def driver_of(cell: CellSpec) -> Driver:
    """The cell's driver. Raises UsageError if it is unknown, unreadable or does not support the engine."""
    name = cell.client.partition("@")[0]
    if name in drivers.names():
        if cell.driver:
            raise UsageError(f"--client {cell.client} and --driver both choose the driver; remove one of them")
        return drivers.find(cell.client, cell.engine)
    if cell.client and cell.client != RUST and not by_jdbc(cell):
        raise unknown(cell.client)
    if cell.driver and cell.client.partition(":")[0] not in ("", RUST, JDBC):
        raise unknown(cell.client)
    return jdbc.driver_of(cell)


def unknown(client: str) -> UsageError:
    """The error for a client that there is not."""
    name, at, version = client.partition(":")
    if name in drivers.names() and at:
        return UsageError(f"--client {client}: a version follows '@'; write {name}@{version}")
    return UsageError(
        f"--client {client}: {nearest(name.partition('@')[0], words())}. A version follows '@' (psycopg@3.2), that of a JDBC driver ':' "
        "(jdbc:9.7.0)"
    )


def options_for(driver: Driver | None) -> dict[str, jdbc.Option] | dict[str, drivers.Option]:
    """The settings (`--set`) that a cell has with this driver. None: the Rust agent, which has none. Pure."""
    if isinstance(driver, drivers.Driver):
        return {option.name: option for option in driver.options}
    return jdbc.options_for(driver)


def every_option() -> frozenset[str]:
    """The names of the settings of all drivers."""
    return jdbc.OPTIONS | {option.name for driver in drivers.every() for option in driver.options}


def check(
    cell: CellSpec, driver: Driver, program: Program, options: Mapping[str, str], factors: Mapping[str, str]
) -> None:
    """Refuse what this driver or its agent can't do, before anything starts. `factors`: the mechanism's. Raises UsageError."""
    if isinstance(driver, drivers.Driver):
        _checks.check(cell, driver, program, options, factors)
    else:
        jdbc.check(cell, driver, program, options, factors)


def fetch(wanted: Iterable[Driver]) -> None:
    """Fetch these drivers, and make their agents, before anything starts. Raises MissingServer, RunError."""
    for driver in {driver.title: driver for driver in wanted}.values():
        if isinstance(driver, drivers.Driver):
            drivers.language(driver.language).fetch(driver)
        else:
            jdbc.fetch([driver])


def most_tls(driver: Driver) -> str:
    """The newest TLS version that the driver supports. Pure."""
    return "1.3" if isinstance(driver, drivers.Driver) else jdbc.most_tls(driver)


def comparable(one: CellSpec, other: CellSpec) -> bool:
    """Whether the drivers of both read rows in the same form, so that they can be two arms of a cell. Pure."""
    if by_jdbc(one) or by_jdbc(other):
        return by_jdbc(one) and by_jdbc(other)
    name, _, _ = one.client.partition("@")
    return asked(one) and name == other.client.partition("@")[0]


def compiles(cell: CellSpec) -> bool:
    """Whether what makes the cell's load is compiled while it runs, and so needs its own warm-up."""
    if by_jdbc(cell) or cell.client in ("", RUST):
        return by_jdbc(cell)
    driver = driver_of(cell)
    return isinstance(driver, drivers.Driver) and drivers.language(driver.language).compiles


def settled(cells: list[CellSpec]) -> list[CellSpec]:
    """Use TLS 1.2 in a whole group of cells if one of its drivers has no TLS 1.3 and no cell sets a version: only the
    driver then differs.
    """
    new_cells = list(cells)
    for group in {cell.group or f"\0{number}" for number, cell in enumerate(cells)}:
        numbers = [number for number, cell in enumerate(cells) if (cell.group or f"\0{number}") == group]
        if any(cells[number].mechanism != "tls" or "version" in cells[number].factors for number in numbers):
            continue
        if any(asked(cells[number]) and most_tls(driver_of(cells[number])) == "1.2" for number in numbers):
            for number in numbers:
                factors = {**cells[number].factors, "version": "1.2"}
                new_cells[number] = msgspec.structs.replace(cells[number], factors=factors)
    return new_cells

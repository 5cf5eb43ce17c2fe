"""Resolve a CellSpec into a PlannedCell: the one place that looks up names and parses options."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine
from ciphercost.load import headers, secret_columns, workloads
from ciphercost.load.jdbc import options
from ciphercost.load.jdbc.drivers import Driver
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._column import Columns
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec
from ciphercost.plan import cell_checks, conditions, connection_strings, versus
from ciphercost.plan.planned import Client, PlannedCell, prepare

REQUEST_PARAMETERS = ("http",)
"""Parameters of web workloads that change how requests are sent, not what they request."""


def resolve(cell: CellSpec) -> PlannedCell:
    """The cell with engine, mechanism, workload, client and conditions resolved.

    Its workload has its full name (`kv-get`), also where the user wrote `get`.

    Provisioning does what depends on a run's key or on an installed version. Reads the user's files; starts no server.
    Raises UsageError if the cell can't be run; the message has what is wrong, where, and what to write instead.
    """
    if (name := workloads.full_name(cell.workload)) != cell.workload:
        cell = msgspec.structs.replace(cell, workload=name)
    engine, mechanism = _target(cell)
    cell = connection_strings.applied(cell, engine, mechanism)
    if engine.by_jdbc and cell.client == options.RUST:
        raise UsageError(f"--client rust: only a JDBC driver can use {cell.engine}; remove --client")
    usual = options.WORD if engine.by_jdbc else ""
    if not options.asked(cell) and cell.client != usual:
        cell = msgspec.structs.replace(cell, client=usual)
    workload = workload_of(cell, engine)
    driver = options.driver_of(cell) if options.asked(cell) else None
    secret, columns = _secret(cell, mechanism, workload)
    known = options.options_for(driver)
    own = [factor.name for factor in mechanism.factors]
    _check_names(cell, [*own, *secret, *workload.parameters, *workload.choices, *known], workload, driver)
    factors = mechanism.check({name: value for name, value in cell.factors.items() if name in own})
    cell_checks.check_fips(cell, engine)
    mechanism.fits(engine, factors)
    engine.check_factors(mechanism.name, factors, cell.version)
    mechanism.check_version(engine, cell.version)
    others = {*own, *secret, *workload.choices, *known}
    parameters = {name: value for name, value in cell.factors.items() if name not in others}
    cell_checks.check_numbers(cell)
    if isinstance(mechanism, Columns):
        cell_checks.check_secrets(cell, mechanism, workload)
    cell_checks.check_language(cell, engine, workload)
    program = prepare(cell, engine, workload, parameters)
    cell_checks.check_documents(cell, engine, workload, program.documents)
    choices = _choices(cell, workload)
    if choices.get("connection") == "per-insert" and not cell.csv:
        program = msgspec.structs.replace(program, per_request=True)
    engine.workload_fields(cell.version, program.parameters, encrypted=True)
    cell_checks.check_headers(cell, engine)
    header_names, given_headers = headers.of(cell.headers, cell.headers_file)
    client = None
    if driver is not None:
        client = Client(driver, {name: value for name, value in cell.factors.items() if name in known})
        options.check(cell, driver, program, client.options, factors)
    planned = PlannedCell(
        spec=cell,
        engine=engine,
        mechanism=mechanism,
        factors=factors,
        workload=workload,
        parameters=parameters,
        choices=choices,
        secret=secret,
        secret_columns=columns,
        client=client,
        conditions=conditions.Conditions(),  # parsed last, so that a wrong address is reported first
        program=program,
        header_names=header_names,
        headers=given_headers,
    )
    cell_checks.check_column_client(planned)
    cell_checks.check_server(planned)
    planned = msgspec.structs.replace(planned, conditions=conditions.parse(cell, engine, mechanism))
    instead = cell.versus.get(versus.MECHANISM, "") if mechanism.layer == "column" else ""
    if (other := versus.reference_of(cell, mechanism, mechanisms.get(instead) if instead else mechanism)) is not None:
        planned = msgspec.structs.replace(planned, reference=resolve(other))
    if engine.embedded and (cell.url or cell.bindir):
        raise UsageError(f"{cell.engine} is embedded in the agent and starts no server; remove --url and --bindir")
    return planned


def workload_of(cell: CellSpec, engine: Engine | None = None) -> Workload:
    """The workload of a cell: a named one, or the user's statements. `engine`: the cell's, if already resolved. Raises UsageError."""
    if cell.sql:
        return workloads.from_sql(Path(cell.sql))
    found = workloads.get(workloads.full_name(cell.workload))
    target = engine or engines.get(cell.engine)
    if target.language != "http":
        # Such a workload may serve web servers too.
        rest = {name: value for name, value in found.parameters.items() if name not in REQUEST_PARAMETERS}
        found = msgspec.structs.replace(found, parameters=rest)
    if found.records and cell.csv:
        return msgspec.structs.replace(found, parameters={"rows": found.parameters["rows"]})
    if target.foreign:
        # The size of its pages can't be chosen.
        own = {name: value for name, value in found.parameters.items() if name in REQUEST_PARAMETERS}
        return msgspec.structs.replace(found, parameters=own, documents={})
    # On the user's table the file determines everything, so there are no parameters.
    return msgspec.structs.replace(found, parameters={}) if cell.csv else found


def _target(cell: CellSpec) -> tuple[Engine, Mechanism]:
    """Engine and mechanism. Raises UsageError for an unknown name or several mechanisms at once."""
    engine = engines.get(cell.engine)
    parts = cell.mechanism.split("+")
    for part in parts:
        if not mechanisms.has(engine, part):
            raise UsageError(f"{cell.engine} has no mechanism '{part}': {nearest(part, mechanisms.of(engine))}")
    if len(parts) > 1:
        raise UsageError(f"{cell.engine}:{cell.mechanism}: can't combine these mechanisms; run them as separate cells")
    return engine, mechanisms.get(cell.mechanism)


def _check_names(cell: CellSpec, known: list[str], workload: Workload, driver: Driver | None) -> None:
    """Raises UsageError for a name in `--set` that is not `known`."""
    for name in cell.factors:
        if name not in known:
            places = [f"a factor of {cell.mechanism}", f"a parameter of {workload.name}"]
            places += [f"an option of {driver.title}"] if driver else []
            raise UsageError(f"--set {name}: not {', '.join(places[:-1])} or {places[-1]}; {nearest(name, known)}")


def _secret(cell: CellSpec, mechanism: Mechanism, workload: Workload) -> tuple[dict[str, str], tuple[str, ...]]:
    """(`secret` from `--set` or the default, the columns that it selects). Raises UsageError.

    Both are empty unless the mechanism encrypts columns and the workload names its secret columns.
    """
    asked = cell.factors.get(secret_columns.FACTOR)
    if not isinstance(mechanism, Columns):
        if asked is not None and secret_columns.FACTOR not in {*workload.parameters, *workload.choices}:
            raise UsageError(
                f"secret={asked}: {cell.mechanism} does not encrypt columns; use a mechanism that does (`ciphercost list mechanisms`), or "
                "remove secret"
            )
        return {}, ()
    names = secret_columns.names(workload)
    if names:
        value = secret_columns.ALL if asked is None else asked
        columns = secret_columns.chosen(value, names, f"workload {cell.workload}")
        return {secret_columns.FACTOR: value}, columns
    if asked is not None:
        raise UsageError(
            f"secret={asked}: workload {cell.workload} has no names for its secret columns; "
            f"use --workload {workloads.fitting(secret_columns.names)}, or remove secret"
        )
    return {}, ()


def _choices(cell: CellSpec, workload: Workload) -> dict[str, str]:
    """The word for each of the workload's choices: from `--set`, or the first. Raises UsageError."""
    found = {}
    for name, words in workload.choices.items():
        found[name] = cell.factors.get(name, words[0])
        if found[name] not in words:
            raise UsageError(f"--set {name}={found[name]}: unknown value; {nearest(found[name], words)}")
    return found

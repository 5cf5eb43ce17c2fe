"""Resolve a CellSpec into a PlannedCell: the one place that looks up names and parses clients."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine
from ciphercost.load import clients, headers, own_scripts, secret_columns, tables, workload_file, workloads
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms import Mechanism, _blind
from ciphercost.mechanisms._column import Columns
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec
from ciphercost.plan import (
    cell_checks,
    command_cells,
    conditions,
    connection_loads,
    connection_strings,
    dump_checks,
    dump_rows,
    key_rotations,
    operation_checks,
    script_checks,
    versus,
)
from ciphercost.plan.planned import Client, PlannedCell, prepare

REQUEST_PARAMETERS = ("http",)
"""Parameters of web workloads that change how requests are sent, not what they request."""


def resolve(cell: CellSpec) -> PlannedCell:
    """The cell with engine, mechanism, workload, client and conditions resolved.

    Its workload has its full name (`kv-get`), also where the user wrote `get`.

    Provisioning does what depends on a run's key or on an installed version. Reads the user's files; starts no server.
    Raises UsageError if the cell can't be run; the message has what is wrong, where, and what to write instead.
    """
    engine, mechanism = _target(cell)
    if engine.by_command:
        planned = command_cells.planned(cell, engine, mechanism)
        return msgspec.structs.replace(planned, conditions=conditions.parse(cell, engine, mechanism))
    command_cells.check_absent(cell)
    if not cell.dump_rows:
        return _resolve(cell)
    name = dump_rows.check(cell, engine, mechanism)
    driver = clients.driver_of(cell) if clients.asked(cell) else None
    _check_names(
        cell, mechanism, [secret_columns.FACTOR], workload_of(cell, engine), driver
    )  # before the dump is loaded
    table = dump_rows.taken(cell, engine, name)
    with table.worded():
        planned = _resolve(table.as_csv(cell))
    both = [_of_dump(one, table, cell) if one else None for one in (planned, planned.reference)]
    assert both[0] is not None
    return msgspec.structs.replace(both[0], reference=both[1])


def _of_dump(planned: PlannedCell, table: dump_rows.Table, written: CellSpec) -> PlannedCell:
    """A cell on the file of a table's rows as one of the dump."""
    return msgspec.structs.replace(
        planned,
        spec=table.as_dump(planned.spec, written),
        secret={secret_columns.FACTOR: ",".join(written.secret)},
        program=table.named(planned.program),
        rows=table,
    )


def _resolve(cell: CellSpec) -> PlannedCell:
    """`resolve` of a cell whose data needs no server."""
    if (name := workloads.full_name(cell.workload)) != cell.workload:
        cell = msgspec.structs.replace(cell, workload=name)
    engine, mechanism = _target(cell)
    cell = connection_strings.applied(cell, engine, mechanism)
    cell = _at_logged_rate(cell, engine)
    if engine.by_jdbc and cell.client == clients.RUST:
        raise UsageError(f"--client rust: only a JDBC driver can use {cell.engine}; remove --client")
    usual = clients.JDBC if engine.by_jdbc else ""
    if not clients.asked(cell) and cell.client != usual:
        cell = msgspec.structs.replace(cell, client=usual)
    workload = workload_of(cell, engine)
    driver = clients.driver_of(cell) if clients.asked(cell) else None
    secret, columns = _secret(cell, mechanism, workload)
    known = clients.options_for(driver)
    factor_names = [factor.name for factor in mechanism.factors]
    _check_names(cell, mechanism, secret, workload, driver)
    factors = mechanism.check({name: value for name, value in cell.factors.items() if name in factor_names})
    cell_checks.check_fips(cell, engine)
    mechanism.fits(engine, factors)
    engine.check_factors(mechanism.name, factors, cell.version)
    mechanism.check_version(engine, cell.version)
    others = {*factor_names, *secret, *workload.choices, *known}
    parameters = {name: value for name, value in cell.factors.items() if name not in others}
    cell_checks.check_numbers(cell)
    dump_checks.check(cell, engine)
    if isinstance(mechanism, Columns):
        cell_checks.check_secrets(cell, mechanism, workload)
    cell_checks.check_language(cell, engine, workload)
    script_checks.check(cell, engine, workload)
    script_checks.check_file(cell, engine, workload)
    if factors.get(_blind.SEARCH.name) == _blind.INDEX and not (cell.csv and columns):
        raise UsageError(
            f"search={_blind.INDEX}: workload {cell.workload} has tables without a column for it; use your own rows: --csv FILE --secret COLUMN"
        )
    program = prepare(cell, engine, workload, parameters, secret=columns)
    script_checks.check_program(cell, engine, program)
    cell_checks.check_documents(cell, engine, workload, program.documents)
    choices = _choices(cell, workload)
    operation_checks.check(cell, engine, mechanism, workload, choices)
    if choices.get("connection") == "per-insert" and not cell.csv:
        program = msgspec.structs.replace(program, per_request=True)
    engine.workload_fields(cell.version, program.parameters, encrypted=True)
    cell_checks.check_headers(cell, engine)
    header_names, given_headers = headers.of(cell.headers, cell.headers_file)
    client = None
    if driver is not None:
        client = Client(driver, {name: value for name, value in cell.factors.items() if name in known})
        clients.check(cell, driver, program, client.options, factors)
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
    return key_rotations.with_rotations(connection_loads.with_loads(planned))


def workload_of(cell: CellSpec, engine: Engine | None = None) -> Workload:
    """The workload of a cell: a named one, or the user's statements. `engine`: the cell's, if already resolved. Raises UsageError."""
    if (engine or engines.get(cell.engine)).by_command:
        return command_cells.workload(cell)
    if cell.own_script:
        return own_scripts.workload(cell.scripts, cell.builtin, tables=not (cell.url or cell.dump))
    own_rows = bool(cell.csv or cell.dump_rows)
    if own_rows and cell.workload in tables.TITLES:
        title, measures = tables.TITLES[cell.workload]
        return Workload(title=title, measures=measures, transaction=[], name=cell.workload)
    named = workloads.full_name(cell.workload)
    workload = workload_file.read(Path(cell.workload)) if cell.workload_file else workloads.get(named)
    target = engine or engines.get(cell.engine)
    if target.language != "http":
        # Such a workload may serve web servers too.
        rest = {name: value for name, value in workload.parameters.items() if name not in REQUEST_PARAMETERS}
        workload = msgspec.structs.replace(workload, parameters=rest)
    if workload.records and cell.csv:
        return msgspec.structs.replace(workload, parameters={"rows": workload.parameters["rows"]})
    if target.foreign:
        # The size of its pages can't be chosen.
        request_parameters = {name: value for name, value in workload.parameters.items() if name in REQUEST_PARAMETERS}
        return msgspec.structs.replace(workload, parameters=request_parameters, documents={})
    # On the user's table the file determines everything, so there are no parameters.
    return msgspec.structs.replace(workload, parameters={}) if own_rows else workload


def _at_logged_rate(cell: CellSpec, engine: Engine) -> CellSpec:
    """The cell at the rate of the log that its workload was made from, if it is an open loop and the user gave no rate."""
    if cell.regime != "latency" or cell.rate or cell.objective or not cell.workload_file:
        return cell
    rate = workload_of(cell, engine).rate
    return msgspec.structs.replace(cell, rate=min(rate, cell.max_rate) if cell.max_rate else rate)


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


def _check_names(
    cell: CellSpec, mechanism: Mechanism, secret: Iterable[str], workload: Workload, driver: clients.Driver | None
) -> None:
    """Raises UsageError for a name in `--set` that nothing of the cell has. `secret`: the name that selects secret columns, if any."""
    factors = [factor.name for factor in mechanism.factors]
    known = [*factors, *secret, *workload.parameters, *workload.choices, *clients.options_for(driver)]
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
    if cell.secret:
        _check_option(cell, mechanism, workload)
        asked = ",".join(cell.secret)
    if not isinstance(mechanism, Columns):
        if asked is not None and secret_columns.FACTOR not in {*workload.parameters, *workload.choices}:
            raise UsageError(
                f"secret={asked}: {cell.mechanism} does not encrypt columns; use a mechanism that does (`ciphercost list mechanisms`), or "
                "remove secret"
            )
        return {}, ()
    if cell.csv and not workload.records:
        if cell.workload not in tables.WORKLOADS:
            return {}, ()  # preparing it says which workloads run on such rows
        columns = secret_columns.of_rows(asked, cell.secret, Path(cell.csv), header=not cell.no_header)
        return {secret_columns.FACTOR: asked or ""}, columns
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


def _check_option(cell: CellSpec, mechanism: Mechanism, workload: Workload) -> None:
    """Raises UsageError for --secret where it can choose no columns."""
    option = f"--secret {','.join(cell.secret)}"
    if not cell.csv:
        raise UsageError(
            f"{option}: names columns of your own rows, and there are none; add --csv FILE or --dump FILE, or remove --secret"
        )
    if secret_columns.FACTOR in cell.factors:
        raise UsageError(f"{option} and --set {secret_columns.FACTOR}=… choose the same columns; remove one of them")
    if workload.records:
        raise UsageError(
            f"{option}: workload {cell.workload} has its own tables; choose of their columns with --set secret=…, or remove --workload"
        )
    if not isinstance(mechanism, Columns):
        raise UsageError(
            f"{option}: {cell.mechanism} does not encrypt columns; use a mechanism that does (`ciphercost list mechanisms`), or remove --secret"
        )


def _choices(cell: CellSpec, workload: Workload) -> dict[str, str]:
    """The word for each of the workload's choices: from `--set`, or the first. Raises UsageError."""
    choices = {}
    for name, words in workload.choices.items():
        choices[name] = cell.factors.get(name, words[0])
        if choices[name] not in words:
            raise UsageError(f"--set {name}={choices[name]}: unknown value; {nearest(choices[name], words)}")
    return choices

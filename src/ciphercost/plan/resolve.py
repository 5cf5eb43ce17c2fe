"""resolve: A cell's workload, factors, parameters, client options and program, looked up by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.load import secret_columns, tables, workloads
from ciphercost.load.codec import Codec, Encrypting
from ciphercost.load.jdbc.options import driver_of, options_for
from ciphercost.load.program import Program
from ciphercost.mechanisms._column import Columns, only
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec


def split_factors(cell: CellSpec) -> tuple[dict[str, str], dict[str, str]]:
    """(mechanism's factors with defaults, workload's parameters) of what `--set` gave. Raises UsageError for a name of neither.

    What is said to a client (`client_options`) is left out of both.
    """
    mechanism = mechanisms.get(cell.mechanism)
    workload = workload_of(cell)
    known = {factor.name for factor in mechanism.factors}
    options = options_for(cell)
    selection = secrets_asked(cell)
    for name in cell.factors:
        if (
            name not in known
            and name not in selection
            and name not in workload.parameters
            and name not in workload.choices
            and name not in options
        ):
            both = [*known, *selection, *workload.parameters, *workload.choices, *options]
            client = f", nor an option of {driver_of(cell).title}" if options else ""
            raise UsageError(
                f"'{name}' is neither a factor of {cell.mechanism} nor a parameter of {workload.name}{client}: {nearest(name, both)}"
            )
    own = {name: value for name, value in cell.factors.items() if name in known}
    others = {*known, *selection, *workload.choices, *options}
    parameters = {name: value for name, value in cell.factors.items() if name not in others}
    filled = mechanism.check(own)
    engine = engines.get(cell.engine)
    mechanism.fits(engine, filled)
    engine.check_factors(mechanism.name, filled, cell.version)
    mechanism.check_version(engine, cell.version)
    return filled, parameters


def secrets_asked(cell: CellSpec) -> dict[str, str]:
    """`secret` as `--set` has it, where the cell's mechanism encrypts columns and its workload names them. Raises UsageError."""
    workload, asked = workload_of(cell), cell.factors.get(secret_columns.FACTOR)
    if not isinstance(mechanisms.get(cell.mechanism), Columns):
        if asked is not None and secret_columns.FACTOR not in {*workload.parameters, *workload.choices}:
            raise UsageError(
                f"secret={asked}: {cell.mechanism} does not encrypt columns; use a mechanism that does (`ciphercost list mechanisms`), or "
                "leave secret out"
            )
        return {}
    names = secret_columns.names(workload)
    if names:
        value = secret_columns.ALL if asked is None else asked
        secret_columns.chosen(value, names, f"workload {cell.workload}")
        return {secret_columns.FACTOR: value}
    if asked is not None:
        have = ", ".join(each for each in workloads.names() if secret_columns.names(workloads.get(each)))
        raise UsageError(
            f"secret={asked}: workload {cell.workload} has no names for its secret columns; use --workload {have}, or leave secret out"
        )
    return {}


def _only_chosen(cell: CellSpec, codec: Codec | None) -> Codec | None:
    """The codec for the columns that the cell has secret."""
    asked = secrets_asked(cell)
    if not asked or not isinstance(codec, Encrypting):
        return codec
    known = secret_columns.names(workload_of(cell))
    return only(codec, secret_columns.chosen(asked[secret_columns.FACTOR], known, f"workload {cell.workload}"))


def client_options(cell: CellSpec) -> dict[str, str]:
    """What `--set` says to the cell's client. Pure."""
    known = options_for(cell)
    return {name: value for name, value in cell.factors.items() if name in known}


def choices(cell: CellSpec) -> dict[str, str]:
    """The words that `--set` chose of those that the workload has, the others as they are unless told otherwise. Raises UsageError."""
    found = {}
    for name, words in workload_of(cell).choices.items():
        found[name] = cell.factors.get(name, words[0])
        if found[name] not in words:
            raise UsageError(f"{name} can't be '{found[name]}': {nearest(found[name], words)}")
    return found


FOREIGN_WORKLOADS = ("page", "connect")
WAY_PARAMETERS = ("http",)
"""Of workloads of requests: how they are sent, and not what of."""


def workload_of(cell: CellSpec) -> workloads.Workload:
    """The workload of a cell: a named one, or the user's own statements. Raises UsageError."""
    if cell.sql:
        return workloads.from_sql(Path(cell.sql))
    found = workloads.get(cell.workload)
    if found.records and cell.csv:
        return msgspec.structs.replace(found, parameters={"rows": found.parameters["rows"]})
    if engines.get(cell.engine).foreign:
        # Its pages are as large as they are.
        own = {name: value for name, value in found.parameters.items() if name in WAY_PARAMETERS}
        return msgspec.structs.replace(found, parameters=own, documents={})
    # On the user's own table everything follows from the file.
    return msgspec.structs.replace(found, parameters={}) if cell.csv else found


def program_of(cell: CellSpec, parameters: Mapping[str, str], codec: Codec | None = None) -> Program:
    """The cell's workload in its server's dialect, on tables of its own or on the user's rows. Raises UsageError.

    `codec`: what becomes of the workload's secrets in the encrypted arm.
    """
    dialect = engines.get(cell.engine).dialect
    codec = _only_chosen(cell, codec)
    if cell.csv:
        if cell.sql:
            raise UsageError("--csv and --sql both say what an operation is: leave one of them out")
        if (found := workload_of(cell)).records:
            return workloads.prepare(found, dialect, parameters, cell.rows, codec, Path(cell.csv))
        if cell.rows:
            raise UsageError("--rows does not go with --csv: the file has as many rows as it has")
        return tables.program(Path(cell.csv), cell.workload, dialect)
    marked_only = cell.factors.get("share", "all") != "all"
    made = workloads.prepare(workload_of(cell), dialect, parameters, cell.rows, codec, marked_only=marked_only)
    alone = choices(cell).get("connection") == "per-insert"
    return msgspec.structs.replace(made, per_request=True) if alone else made

"""spec: command line or TOML file -> Spec, checked as far as can be without starting anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ciphercost import checked, conditions, engines, jdbc, mechanisms, owndata, plan, secret_columns, workloads
from ciphercost.engines import Engine
from ciphercost.errors import UsageError, nearest
from ciphercost.mechanisms._column import BLOCK, Codec, Columns, Encrypting, only
from ciphercost.model import CellSpec, Language, Spec

_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str, where: str = "--time") -> float:
    """Seconds of `90s`, `3m`, `1h`, `500ms`, `90`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|)\s*", text)
    if match is None or float(match.group(1)) == 0:
        raise UsageError(f"{where}: '{text}' is not a duration; write 90s, 3m or 1h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def share(text: str, where: str = "--precision") -> float:
    """0.01 of `1%` or `0.01`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < value < 1:
        raise UsageError(f"{where}: '{text}' is not a share; write 1% or 0.01")
    return value


def budget(text: str, where: str = "--fail-over") -> float:
    """0.1 of `10%`, the most that encryption may cost; more than 100 % is a budget too. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or float(match.group(1)) <= 0:
        raise UsageError(f"{where}: '{text}' is no budget; write 10% or 2.5%")
    return float(match.group(1)) / 100


def target(text: str) -> tuple[str, str, str]:
    """(engine, version, mechanism) of `ENGINE[@VERSION]:MECHANISM`. Raises UsageError with the nearest valid name."""
    match = re.fullmatch(r"([^:@\s]+)(?:@([\w.]+))?(?::([^:\s]+))?", text)
    if match is None:
        raise UsageError(f"'{text}' is not a target; write ENGINE[@VERSION]:MECHANISM, e.g. postgresql:tls")
    engine, version, mechanism = match.group(1), match.group(2) or "", match.group(3)
    known = mechanisms.of(engines.get(engine))
    if not mechanism:
        raise UsageError(f"'{text}' names no mechanism; write {engine}:{known[0]} ({nearest('', known)})")
    return engine, version, mechanism


def check(spec: Spec, *, load: bool = True) -> Spec:
    """The spec, if it can be run: every name known, every number possible. Raises UsageError saying what, where and what to write."""
    if not spec.cells:
        raise UsageError(
            'nothing to run: the spec has no cells; add one, e.g. engine = "postgresql", mechanism = "tls"'
        )
    if spec.sessions < 1:
        raise UsageError(f"sessions {spec.sessions}: at least 1 is needed (8 for an interval that covers restarts)")
    if spec.mode == "full" and spec.sessions < 2:
        raise UsageError("one session can't say how much a restart changes: use --sessions 8, or quick mode (--quick)")
    for name in ("time", "margin"):
        value = getattr(spec, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} {value}: must be above 0")
    if spec.seed < 0:
        raise UsageError(f"seed {spec.seed}: must be 0 (drawn at the start) or above")
    if spec.precision and any(cell.regime == "latency" for cell in spec.cells):
        raise UsageError("precision stops a closed loop; regime latency has none: leave one of them out")
    if not 0 <= spec.precision < 1:
        raise UsageError(f"precision {spec.precision}: must lie between 0 and 1")
    if spec.slice_seconds and not 0.05 <= spec.slice_seconds <= 60:
        raise UsageError(f"slice_seconds {spec.slice_seconds}: must lie between 0.05 and 60")
    for cell in spec.cells:
        _check_cell(cell)
        if load and cell.url:
            engines.get(cell.engine).check_pair(cell.url)
    for group in {cell.group for cell in spec.cells} - {""}:
        if len({cell.regime for cell in spec.cells if cell.group == group}) > 1:
            raise UsageError(f"group '{group}': its cells share their sessions, so they must share their regime")
    checked.ranged(spec, "the spec")
    return spec


def long_enough(spec: Spec) -> Spec:
    """The spec, if every cell has time for the blocks that an interval needs. Raises UsageError with the least time."""
    if spec.precision or spec.slice_seconds:
        return spec
    for cell in spec.cells:
        if spec.time < (least := plan.least_seconds(spec, cell)):
            sessions = f"{spec.sessions} sessions of " if spec.mode == "full" else ""
            shorter = "" if spec.mode == "quick" else ", or fewer --sessions, or --quick"
            raise UsageError(
                f"--time {spec.time:g}s: too short for {cell.engine}:{cell.mechanism}, which needs at least {least:.0f}s "
                f"({sessions}{plan.MIN_BLOCKS} blocks of {plan.SLICES_A_BLOCK:g} slices of {plan.CANDIDATES[0]:g} s, and warm-up): "
                f"give it --time {least:.0f}s{shorter}"
            )
    return spec


def split_factors(cell: CellSpec) -> tuple[dict[str, str], dict[str, str]]:
    """(mechanism's factors with defaults, workload's parameters) of what `--set` gave. Raises UsageError for a name of neither.

    What is said to a client (`client_options`) is left out of both.
    """
    mechanism = mechanisms.get(cell.mechanism)
    workload = workload_of(cell)
    known = {factor.name for factor in mechanism.factors}
    options = jdbc.options_for(cell)
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
            client = f", nor an option of {jdbc.driver_of(cell).title}" if options else ""
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
    known = jdbc.options_for(cell)
    return {name: value for name, value in cell.factors.items() if name in known}


def choices(cell: CellSpec) -> dict[str, str]:
    """The words that `--set` chose of those that the workload has, the others as they are unless told otherwise. Raises UsageError."""
    found = {}
    for name, words in workload_of(cell).choices.items():
        found[name] = cell.factors.get(name, words[0])
        if found[name] not in words:
            raise UsageError(f"{name} can't be '{found[name]}': {nearest(found[name], words)}")
    return found


SPLITS: dict[Language, tuple[tuple[str, str], ...]] = {
    "sql": (("connect", ""), ("point-select", ""), ("bulk-read", "10KB"), ("bulk-read", "100KB"), ("bulk-read", "1MB")),
    "http": (("connect", ""), ("file", "1KB"), ("file", "10KB"), ("file", "100KB"), ("file", "1MB")),
}
"""By what an operation is written in: workloads, the last ones at several sizes, that together tell handshake, request and byte apart."""
MATRIX_FIELDS = (
    "clients",
    "rows",
    "workload",
    "cpu_crypto",
    "bandwidth",
    "delay",
    "mtu",
    "cache",
    "client",
    "driver",
    "idle",
)
"""What of a cell, beside factors and parameters, a matrix may vary."""


def matrix(cell: CellSpec, given: Sequence[str], number: int = 0) -> list[CellSpec]:
    """`cipher=a,b` and `certificate=c,d` -> the cell with (a, c), the reference, then one change at a time. Raises UsageError.

    `number`: of the target on the command line, so that two experiments stay two.
    """
    axes: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or len(listed) < 2:
            raise UsageError(f"--matrix {text}: write NAME=VALUE,VALUE…, e.g. --matrix cipher=aes256-gcm,chacha20")
        if name in axes:
            raise UsageError(f"--matrix {name} is given twice; list all its values in one")
        if name in cell.factors:
            raise UsageError(f"--matrix and --set both say {name}: leave it out of --set")
        if len(set(listed)) < len(listed):
            raise UsageError(f"--matrix {text}: a value stands there twice")
        axes[name] = listed
    if not axes:
        return [cell]
    first = {name: values[0] for name, values in axes.items()}
    changes = [first, *({**first, name: value} for name, values in axes.items() for value in values[1:])]
    group = f"{_target(cell, number)} {', '.join(axes)}"
    return [
        _changed(cell, change, group, " ".join(f"{n}={v}" for n, v in change.items() if number == 0 or v != first[n]))
        for number, change in enumerate(changes)
    ]


def _changed(cell: CellSpec, change: Mapping[str, str], group: str, variant: str) -> CellSpec:
    fields: dict[str, Any] = {"group": group, "variant": variant}
    factors = dict(cell.factors)
    for name, value in change.items():
        field = name.replace("-", "_")
        if field in ("client", "driver"):
            fields |= _client(cell, field, value)
            continue
        if field not in MATRIX_FIELDS:
            factors[name] = value
            continue
        kind = type(getattr(cell, field))
        try:
            fields[field] = kind(value)
        except ValueError:
            raise UsageError(f"--matrix {name}={value}: '{value}' is not a number") from None
    made = msgspec.structs.replace(cell, factors=factors, **fields)
    if "client" in change and not jdbc.asked(made):
        # What is said to a JDBC driver is for the cells that have one.
        own = {name: value for name, value in factors.items() if name not in jdbc.OPTIONS}
        made = msgspec.structs.replace(made, factors=own)
    return made


def _client(cell: CellSpec, field: str, value: str) -> dict[str, str]:
    """Of a matrix: `client=rust,jdbc`, `driver=5.1.49,9.7.0`, `driver=one.jar,other.jar`. Raises UsageError."""
    if field == "client":
        if cell.client:
            raise UsageError("--matrix client and --client both say who makes the load: leave --client out")
        return {"client": "" if value == "rust" else value}
    if ":" in cell.client or cell.driver:
        raise UsageError("--matrix driver: leave the version of --client, and --driver, out")
    return {"client": jdbc.WORD, "driver": value} if value.endswith(".jar") else {"client": f"{jdbc.WORD}:{value}"}


def _target(cell: CellSpec, number: int) -> str:
    version = f"@{cell.version}" if cell.version else ""
    return f"{number + 1}. {cell.engine}{version}:{cell.mechanism}"


def split(cell: CellSpec, number: int = 0) -> list[CellSpec]:
    """The cell's server and mechanism under the workloads of SPLITS, as one experiment. Pure."""
    group = f"{_target(cell, number)} where the cost comes from"
    return [
        msgspec.structs.replace(
            cell,
            workload=name,
            factors=cell.factors | ({"size": size} if size else {}),
            group=group,
            variant=f"{name} {size}".strip(),
        )
        for name, size in SPLITS[engines.get(cell.engine).language]
    ]


def with_controls(cells: list[CellSpec]) -> list[CellSpec]:
    """Behind the cells of each experiment the controls that belong beside them (`Workload.beside`), which share its sessions. Pure.

    One control for all cells that differ in the mechanism's factors alone.
    """
    made: list[CellSpec] = []
    for numbers in plan.groups(Spec(cells=cells)):
        own = [cells[number] for number in numbers]
        controls: list[CellSpec] = []
        for each in own:
            if (control := _control(each)) and control not in controls:
                controls.append(control)
        if controls and not own[0].group:
            own = [msgspec.structs.replace(each, group=_target(each, numbers[0])) for each in own]
            controls = [msgspec.structs.replace(each, group=own[0].group) for each in controls]
        made += [*own, *controls]
    return made


def _control(cell: CellSpec) -> CellSpec | None:
    """The control of one cell; None where it has none."""
    name = workload_of(cell).beside
    if not name or cell.mechanism != "tls" or cell.engine not in mechanisms.get(name).engines:
        return None
    if cell.factors.get("http", "1") != "1":
        return None  # over HTTP/2 neither arm is sent a file by sendfile
    known = {factor.name for factor in mechanisms.get(cell.mechanism).factors}
    factors = {key: value for key, value in cell.factors.items() if key not in known}
    words = [word for word in cell.variant.split() if word.partition("=")[0] not in known]
    return msgspec.structs.replace(cell, mechanism=name, factors=factors, variant=" ".join([*words, name]))


def control_of(cells: Sequence[CellSpec], number: int) -> int | None:
    """Which of these cells is the control of this one, if one is. Pure."""
    wanted = _control(cells[number])
    return cells.index(wanted) if wanted in cells else None


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


def program_of(cell: CellSpec, parameters: Mapping[str, str], codec: Codec | None = None) -> workloads.Program:
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
        return owndata.program(Path(cell.csv), cell.workload, dialect)
    marked_only = cell.factors.get("share", "all") != "all"
    made = workloads.prepare(workload_of(cell), dialect, parameters, cell.rows, codec, marked_only=marked_only)
    alone = choices(cell).get("connection") == "per-insert"
    return msgspec.structs.replace(made, per_request=True) if alone else made


def _check_cell(cell: CellSpec) -> None:
    engine = engines.get(cell.engine)
    parts = cell.mechanism.split("+")
    for part in parts:
        if part not in mechanisms.of(engine):
            raise UsageError(f"{cell.engine} has no mechanism '{part}': {nearest(part, mechanisms.of(engine))}")
    if len(parts) > 1:
        raise UsageError(
            f"{cell.engine}:{cell.mechanism}: these mechanisms can't be switched on together; run them as two cells"
        )
    factors, parameters = split_factors(cell)
    if cell.clients < 0 or cell.clients > 1000:
        raise UsageError(f"clients {cell.clients}: must lie between 1 and 1000")
    if cell.rows < 0:
        raise UsageError(f"rows {cell.rows}: must be at least 1")
    if not math.isfinite(cell.rate) or cell.rate < 0:
        raise UsageError(f"rate {cell.rate}: must be above 0")
    if cell.ca and not Path(cell.ca).is_file():
        raise UsageError(f"--ca {cell.ca}: there is no such file")
    if isinstance(mechanism := mechanisms.get(cell.mechanism), Columns):
        _check_secrets(cell, mechanism)
    check_language(cell, engine)
    program = program_of(cell, parameters)
    engine.way(cell.version, program.parameters)
    if jdbc.asked(cell):
        jdbc.check(cell, program, client_options(cell), factors)
    if isinstance(mechanism, Columns):
        codec = mechanism.codec(engine, factors, bytes(mechanism.key_bytes), bytes(BLOCK))
        if codec.client_side:
            if jdbc.asked(cell):
                raise UsageError(
                    f"{cell.mechanism} is encryption by the application, which the Java agent does not do: leave --client out"
                )
            program_of(cell, parameters, codec)  # raises what an application can't do
    if engine.embedded and (cell.per_request or program.per_request):
        raise UsageError(
            f"{cell.engine} is embedded: it has no connections to open, so workload '{program.name}' does not fit"
        )
    if cell.ca and "tls" not in mechanisms.of(engine):
        raise UsageError(f"--ca {cell.ca}: {cell.engine} has no TLS, so there is no certificate to check")
    if cell.url and plan.at_rest(cell):
        raise UsageError(
            f"{cell.engine}:{cell.mechanism} compares two servers that ciphercost starts itself, so --url does not fit: leave it "
            "out, and name your binaries by --bindir"
        )
    if cell.url and "certificate" in cell.factors:
        raise UsageError("certificate: a server of yours shows the one that it has; leave it out")
    if (cell.url or engine.foreign) and not engine.embedded:
        if len(cell.url.split()) > engine.urls:
            raise UsageError(f"--url is given {len(cell.url.split())} times, and {cell.engine} is one server: give one")
        engine.check_url(cell.url)
    conditions.check(cell, engine)
    if engine.embedded and (cell.url or cell.bindir):
        raise UsageError(f"{cell.engine} is embedded in the agent: --url and --bindir do not fit")


def check_language(cell: CellSpec, engine: Engine) -> None:
    """A web server is sent requests, any other statements. Raises UsageError."""
    if cell.csv and engine.language != "sql":
        raise UsageError(f"--csv makes a table of the file, and {cell.engine} has none: leave it out")
    if engine.foreign and not cell.sql and cell.workload not in FOREIGN_WORKLOADS:
        raise UsageError(
            f"workload {cell.workload} asks for documents of ours, and this server is yours: use --workload "
            f"{' or '.join(FOREIGN_WORKLOADS)}, which ask for the address itself, or --sql with requests of your own"
        )
    if cell.sql or engine.language in workload_of(cell).languages:
        _check_share(cell)
        return
    fit = [name for name in workloads.names() if engine.language in workloads.get(name).languages]
    raise UsageError(
        f"workload {cell.workload} does not fit {cell.engine}: use --workload with one of {', '.join(fit)}"
    )


def _check_share(cell: CellSpec) -> None:
    """Where only some requests are to be encrypted, the workload must say which. Raises UsageError."""
    if cell.factors.get("share", "all") == "all":
        return
    if cell.delay:
        raise UsageError("--delay is put into one way, and share=checkout takes two: leave one of them out")
    if not workloads.has_marks(workload_of(cell)):
        have = ", ".join(name for name in workloads.names() if workloads.has_marks(workloads.get(name)))
        raise UsageError(
            f"share={cell.factors['share']}: workload {cell.sql or cell.workload} marks no request SECURE, so nothing would be encrypted; "
            f"use --workload {have}, or leave share out"
        )


def _check_secrets(cell: CellSpec, mechanism: Columns) -> None:
    """A mechanism in columns needs values that are secret. Raises UsageError."""
    if cell.sql:
        raise UsageError(
            f"--sql runs on tables as they are, and {mechanism.name} needs them twice, in clear and encrypted: use --workload search"
        )
    if not workloads.has_secrets(workload_of(cell)):
        have = ", ".join(name for name in workloads.names() if workloads.has_secrets(workloads.get(name)))
        raise UsageError(
            f"workload {cell.workload} has no secret column, so {mechanism.name} would encrypt nothing: use --workload with one of {have}"
        )


def load(path: Path) -> Spec:
    """A Spec from a TOML file: top-level keys of Spec, one `[[cells]]` a cell. Raises UsageError naming file and key."""
    data = checked.toml(path)
    _check_keys(data, Spec, str(path))
    if not isinstance(data.get("cells", []), list):
        raise UsageError(f"{path}: cells must be a list: begin each with [[cells]]")
    for number, cell in enumerate(data.get("cells", []), start=1):
        if isinstance(cell, dict):
            _check_keys(cell, CellSpec, f"{path}, cell {number}")
            if "csv" in cell:
                cell.setdefault("workload", owndata.DEFAULT_WORKLOAD)
    timed = "time" in data
    if isinstance(data.get("time"), str):
        data["time"] = duration(data["time"], f"{path}, time")
    for name in ("precision", "margin"):
        if isinstance(data.get(name), str):
            data[name] = share(data[name], f"{path}, {name}")
    try:
        made = msgspec.convert(data, Spec, strict=True)
        made = made if timed else msgspec.structs.replace(made, time=plan.seconds(made.cells))
        return long_enough(check(made))
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {checked.short(error)}") from None


def dump(spec: Spec) -> str:
    """The spec as TOML that `load` reads back. Pure."""
    data: dict[str, Any] = msgspec.to_builtins(spec)
    cells = data.pop("cells")
    data["time"] = spec.time  # its default depends on the cells
    lines = [f"{key} = {_toml(value)}" for key, value in data.items()]
    for made, cell in zip(spec.cells, cells, strict=True):
        cell["workload"] = made.workload  # its default depends on what else there is
        lines += ["", "[[cells]]", *(f"{key} = {_toml(value)}" for key, value in cell.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
        case Sequence() if not isinstance(value, str):
            return "[" + ", ".join(_toml(each) for each in value) + "]"
        case _:
            # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
            return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")


def _check_keys(data: Mapping[str, Any], shape: type[msgspec.Struct], where: str) -> None:
    for key in data:
        if key not in shape.__struct_fields__:
            raise UsageError(f"{where}: unknown key '{key}': {nearest(key, shape.__struct_fields__)}")

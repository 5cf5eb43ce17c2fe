"""Turn command-line options into cells and a plan. Raises UsageError."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciphercost.commands._command_options import load_of
from ciphercost.commands._say import note
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.plan.planned import Plan


def cell_of(target: str, given: dict[str, Any]) -> Any:
    from ciphercost import engines
    from ciphercost.load import headers, tables, units
    from ciphercost.load.connection_string.keywords import as_url
    from ciphercost.model.spec import CellSpec
    from ciphercost.plan import latency_objective, targets

    engine, version, mechanism = targets.target(target)
    names, headers_file = headers.remember(given.get("headers") or ())
    factors = pairs("--set", given["factors"], "version=1.2")
    if given.get("iv"):
        factors |= iv_of(mechanism, given["iv"], factors)
    if given["pooled"] and given["workload"] == "connect":
        raise UsageError("--pooled: workload connect opens a connection for each operation; remove --pooled")
    for option in ("sql", "builtin"):
        if given.get(option) and given["workload"]:
            raise UsageError(f"--workload and --{option} both define the operation; remove one of them")
    if given.get("builtin") and given["csv"]:
        raise UsageError("--csv and --builtin both define the operation; remove one of them")
    if given["csv"] and not given.get("no_progress"):
        announce_reading(given["csv"])
    for name in (
        "clients",
        "rows",
        "rate",
        "sessions",
        "mtu",
        "max_rate",
        "max_connections",
        "max_tries",
        "connections",
        "agents",
        "min_agents",
    ):
        if given.get(name) is not None and given[name] <= 0:
            least = "above 0" if name.endswith("rate") else "at least 1"
            raise UsageError(f"--{name.replace('_', '-')} {given[name]:g}: must be {least}")
    if given.get("max_rate") and given["regime"] not in (None, "latency"):
        raise UsageError(
            f"--max-rate: --regime {given['regime']} loads the server as fast as it answers; remove one of them"
        )
    own_rows = given["csv"] or (given.get("dump") and given.get("secret"))
    usual = tables.DEFAULT_WORKLOAD if own_rows else engines.get(engine).usual_workload
    return CellSpec(
        engine=engine,
        version=version,
        mechanism=mechanism,
        workload=given["workload"] or usual,
        factors=factors,
        versus=pairs("--versus", given.get("versus", ()), "version=1.2"),
        clients=given["clients"] or 0,
        rows=given["rows"] or 0,
        regime=given["regime"] or ("latency" if given.get("max_rate") else "capacity"),
        per_request=given["pooled"] is False,
        rate=given["rate"] or 0.0,
        url=" ".join(
            (url if engines.get(engine).by_command else as_url(url.strip())).strip().replace(" ", "%20")
            for url in given["urls"]
        ),
        ca=given["ca"] or "",
        cert=given.get("cert") or "",
        key=given.get("key") or "",
        server_name=given.get("server_name") or "",
        bindir=given["bindir"] or "",
        sql=list(files) if len(files := given["sql"] or ()) > 1 else "".join(files),
        builtin=list(given.get("builtin") or ()),
        define=pairs("-D", given.get("define") or (), "scale=10"),
        protocol=given.get("protocol") or "",
        max_tries=given.get("max_tries") or 0,
        csv=given["csv"] or "",
        no_header=bool(given.get("no_header")),
        secret=secret_names(given.get("secret")),
        dump=given.get("dump") or "",
        headers=names,
        headers_file=headers_file,
        cpu_crypto=given["cpu_crypto"] or "on",
        bandwidth=given["bandwidth"] or "",
        delay=given["delay"] or "",
        mtu=given["mtu"] or 0,
        loss=given["loss"] or "",
        listen=given.get("listen") or "",
        cache=given["cache"] or "warm",
        idle=given["idle"] or "",
        client=given["client"] or "",
        driver=given["driver"] or "",
        max_rate=given.get("max_rate") or 0.0,
        max_connections=given.get("max_connections") or 0,
        max_errors=units.share(given["max_errors"], "--max-errors") if given.get("max_errors") else 0.0,
        max_latency=units.duration(given["max_latency"], "--max-latency") if given.get("max_latency") else 0.0,
        objective=latency_objective.parse(given["objective"]).text if given.get("objective") else "",
        settings=pairs("--setting", given.get("settings", ()), "shared_buffers=1GB"),
        storm=given.get("storm") or "",
        connections=given.get("connections") or 0,
        command=load_of(given),
    )


def secret_names(text: str | None) -> list[str]:
    """The columns that --secret names. Raises UsageError."""
    if text is None:
        return []
    listed = [name.strip() for name in text.split(",")]
    if not all(listed):
        raise UsageError(f"--secret '{text}': write names of columns with commas, e.g. --secret ssn,diagnosis")
    return listed


SECOND = re.compile(r",\s*(?=[a-z_-]+=)")
"""Where a second NAME=VALUE begins within the value of an option that takes one."""


def pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Values of a repeatable option `NAME=VALUE`, by name. Raises UsageError."""
    value_by_name: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: write NAME=VALUE, e.g. {option} {example}")
        if value_by_name.get(name, value) != value:
            raise UsageError(f"{option} {text}: {name} is already {value_by_name[name]}; write it once")
        if option == "--set" and SECOND.search(value):
            apart = " ".join(f"--set {part}" for part in SECOND.split(text))
            raise UsageError(f"--set {text}: one factor for each --set; write {apart}")
        value_by_name[name] = value
    return value_by_name


def iv_of(mechanism: str, value: str, factors: dict[str, str]) -> dict[str, str]:
    """The factor that --iv stands for. Raises UsageError if the mechanism has none."""
    from ciphercost import mechanisms

    if "iv" in factors:
        raise UsageError("--iv and --set iv=… set the same factor; remove one of them")
    chosen = mechanisms.get(mechanism)
    if "iv" not in {factor.name for factor in chosen.factors}:
        why = "ECB has no IV" if "-ecb-" in mechanism else "only column encryption in a mode with an IV has one"
        raise UsageError(f"--iv {value}: {mechanism} has no choice of IV ({why}); remove --iv")
    return {"iv": value}


BESIDE_A_FILE = (
    "output",
    "json_",
    "no_progress",
    "price",
    "print_spec",
    "targets",
    "cluster",
    "spread",
    "machines",
    "password_command",
    "password_every",
)


def refuse_beside_a_file(path: str) -> None:
    """Raises UsageError for an option that a spec file already sets, because it would have no effect."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in BESIDE_A_FILE and source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} has no effect with a spec file; set it in {path}")


USUAL_SESSIONS = 8


MOST_SESSIONS = 40


def length_of(given: dict[str, Any], usual: float) -> tuple[int, float]:
    """(sessions, seconds of load of each cell). With --precision, sessions continue until it is reached or time is up.

    `usual`: seconds by default. Raises UsageError.
    """
    from ciphercost.load import units

    a_session = usual / USUAL_SESSIONS
    time = units.duration(given["time_"]) if given["time_"] else 0.0
    if given["quick_mode"]:
        if (given["sessions"] or 1) > 1:
            raise UsageError(f"--quick runs one session: remove --quick or --sessions {given['sessions']}")
        return 1, time or usual
    if given["precision"]:
        sessions = given["sessions"] or min(
            MOST_SESSIONS, max(USUAL_SESSIONS, round(time / a_session)) if time else MOST_SESSIONS
        )
        return sessions, time or sessions * a_session
    return given["sessions"] or USUAL_SESSIONS, time or usual


def plan_of(cells: list[Any], given: dict[str, Any]) -> Plan:
    """The plan of a run of these cells, with the options `given`. Raises UsageError."""
    from ciphercost.load import units
    from ciphercost.model.spec import Spec
    from ciphercost.plan import schedule, specs

    sessions, time = length_of(given, schedule.seconds(cells))
    plan = specs.plan(
        Spec(
            cells=cells,
            seed=given["seed"],
            mode="quick" if given["quick_mode"] else "full",
            sessions=sessions,
            time=time,
            precision=units.share(given["precision"]) if given["precision"] else 0.0,
            latency=not given["no_latency"],
            profile=given.get("profile", False),
            **where(given),
        )
    )
    return specs.long_enough(plan)


def where(given: dict[str, Any]) -> dict[str, Any]:
    """Fields of the spec that say where it is measured, as far as they were given. Raises UsageError."""
    if given.get("machines", 0) < 0:
        raise UsageError(f"--machines {given['machines']}: must be at least 1")
    names = ("cluster", "agents", "min_agents", "placement", "spread", "machines")
    return {name: given[name] for name in names if given.get(name)}


LONG_BYTES, READ_BYTES_A_SECOND = 100e6, 15e6


def announce_reading(path: str) -> None:
    """Print a line before a long file is read, which happens before any other output."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    if size > LONG_BYTES:
        seconds = f"about {size / READ_BYTES_A_SECOND:.0f} s"
        note(f"reading {path} ({size / 1e6:,.0f} MB) to detect its column types: {seconds}")

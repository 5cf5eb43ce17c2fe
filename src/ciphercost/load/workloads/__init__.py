"""Workloads are data, not code: one TOML file each, named after the workload, with SQL in pgbench's script language.

title, measures        one line each, for `list` and the reports
languages              the language of its operations: `sql` (default), `http`, or `kv` (commands of a key-value store). Decides which servers can run it
read_only              its operations change nothing, so both arms can run the same ones and must return the same rows
per_request            each operation opens its own connection
draw                   `even`: any stretch of operations has each transaction as often as its weight says; `random` (default): by chance
lengths                for a web server: [[REQUESTS, CONNECTIONS], …]: so many requests go by one connection before the client closes it,
                       in so many of the connections; without it they stay open
protocol               how its statements travel unless --protocol is given: simple, extended or prepared
[shapes]               of a workload made from logs of statements: the statements of each class without their values, for people
written_for            dialect of its statements, postgresql or mysql; only servers of this dialect can run it. Empty: all servers of its languages
rate                   open loop: operations per second unless --rate is given
traffic                what was found in the logs that it was made from (`model/traffic.py`); nothing that runs depends on it
arrivals               open loop: `random`: requests form a Poisson process; `even` (default): requests are evenly spaced; `logged`: they come
                       as in [arrived]: interval_ms, and counts: how many came in each interval of a log
clients                default number of connections (capacity regime)
operation              one slice is one execution of an operator's task, by what `measure/operations` has under this name: `backup`, `restart` …;
                       its transactions are what else it needs, such as changes before a crash
[replication]          its load waits for a replica; `backlog`: a script that does not, and makes `each` changes; `word` writes a text, `beat` a
                       number, which `seen` reads
[parameters]           numbers that `--set NAME=VALUE` and `--rows` change; sizes may be written 64KB, 1MB
[choices]              words for `--set NAME=WORD`; the first is the default: connection = kept | per-insert
loop                   true: its cells report statements, bytes and round trips per operation (`chatter`), with any client
[derived]              numbers computed from the parameters, in order; --rows sets `rows` here unless it is a parameter
load                   SQL that creates and fills the tables; a statement with :first and :last runs once per BATCH of `rows`,
                       one with :row runs once per row; :filler in it is a text of `size` letters
people                 a table that `load` created, to be filled with `rows` made-up people (people.py; parameter data_seed)
records                `register`: fills the tables that `load` created with `rows` records of hospital beds, made up (data_seed) or the
                       register's own (`--csv`); the fields of a record are variables of its transactions
loaded                 SQL that runs after these rows are inserted
[documents]            for a web server: size of each path in bytes, as an expression over the parameters
beside                 a control cell, measured together with a `tls` cell on a server that ciphercost starts: the part of the cost that is not cryptography
large                  a statement or request with one large response, after which memory per connection is measured; empty: there is none
check                  SQL that reads, and must return the same on both arms
[[transaction]]        name, weight, script; constants: variables with the texts that they always have;
                       for a web server the script holds requests: GET /path?of=:it, POST /path body, THINK microseconds,
                       and SECURE before a request that is also encrypted with --set share=checkout; values: how many secret values it
                       seals, opens and searches for, as expressions over the parameters: { sealed = "1", opened = ":rows" }. If a
                       transaction has none, reports don't tell what a value costs
[dialect.NAME]         load, check or a transaction's script for a server that needs other SQL; batch: people per INSERT

like                   name of another workload, from which everything is taken that this file does not set
together               a name for all transactions of a study's file as one workload

A published study has its workloads in `studies/`: STUDY/TRANSACTION names one transaction of STUDY.toml, or a file
STUDY/TRANSACTION.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from ciphercost.load import commands, opened, requests, script, secret_sql
from ciphercost.load.codec import PLAIN, Codec, Encrypting
from ciphercost.load.program import Load, Program, Tables
from ciphercost.load.script_parts import OPEN, SEAL, Script, Variable
from ciphercost.load.tables import people
from ciphercost.model.constrained_types import Amount
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.slices import Arrivals
from ciphercost.model.spec import Draw, Language, QueryMode
from ciphercost.model.traffic import Arrived, Bin, Traffic

PEOPLE_BATCH = 250
"""People per INSERT, if the server accepts several rows."""
_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}


class Transaction(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    script: str
    weight: int = 1
    values: dict[Literal["sealed", "opened", "searched"], str] | None = None
    """Secret values that it encrypts, decrypts and searches for, as expressions over the parameters. None: not told."""
    constants: dict[str, str] = {}
    """Variables with the texts that they always have, such as values of a log."""


class Workload(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A workload as written in its file."""

    title: str
    measures: str
    transaction: list[Transaction]
    load: str = ""
    people: str = ""
    records: str = ""
    loaded: str = ""
    languages: tuple[Language, ...] = ("sql",)
    documents: dict[str, str] = {}
    beside: str = ""
    check: str = ""
    large: str = ""
    read_only: bool = False
    per_request: bool = False
    clients: int = 4
    operation: str = ""
    replication: dict[Literal["backlog", "each", "word", "beat", "seen"], str] = {}
    arrivals: Arrivals = "even"
    arrived: Arrived | None = None
    draw: Draw = "random"
    lengths: tuple[Bin, ...] = ()
    rate: Amount = 0.0
    traffic: Traffic | None = None
    protocol: Literal["", QueryMode] = ""
    written_for: str = ""
    shapes: dict[str, str] = {}
    parameters: dict[str, int | str] = {}
    choices: dict[str, list[str]] = {}
    loop: bool = False
    derived: dict[str, str] = {}
    dialect: dict[str, dict[str, Any]] = {}
    name: str = ""
    like: str = ""
    together: str = ""
    directory: str = ""
    """Where the user's file is, if its statements are the user's."""
    file: str = ""
    """The user's file that it was read from; empty: it is one of ciphercost's."""
    own_sql: bool = False
    """The statements are the user's, so a function call may look like one of our macros without being one."""


def names() -> list[str]:
    """Names of all workloads: their file names."""
    return sorted(
        Path(entry.name).stem for entry in resources.files(__name__).iterdir() if entry.name.endswith(".toml")
    )


def get(name: str) -> Workload:
    """Return the workload of that name. Raises UsageError with the nearest name."""
    study, slash, transaction = name.partition("/")
    if slash:
        return of_study(study, transaction)
    if name not in names():
        raise UsageError(f"unknown workload '{name}': {nearest(name, names())}")
    return read(resources.files(__name__).joinpath(f"{name}.toml").read_text(), name)


@cache
def operation_of(name: str) -> str:
    """The operator's task that a workload of this name is: `backup`; empty: it is none."""
    return get(full_name(name)).operation if full_name(name) in names() else ""


def full_name(name: str) -> str:
    """The name of a workload that may be written without the language it begins with: `kv-get` for `get`."""
    known = names()
    return f"kv-{name}" if name not in known and f"kv-{name}" in known else name


def of_study(study: str, transaction: str) -> Workload:
    """Return one transaction of a published study's workload. Raises UsageError with the nearest name."""
    place, name = resources.files(__name__).joinpath("studies"), f"{study}/{transaction}"
    studies = sorted({Path(entry.name).stem for entry in place.iterdir()})
    if study not in studies:
        raise UsageError(
            f"'{name}': no study '{study}' has its own workloads: {nearest(study, studies)}; `ciphercost list studies` shows what "
            "each study uses"
        )
    workloads = {}
    if (file := place.joinpath(f"{study}.toml")).is_file():
        whole = read(file.read_text(), name)
        workloads = {
            one_transaction.name: msgspec.structs.replace(whole, transaction=[one_transaction])
            for one_transaction in whole.transaction
        }
        workloads |= {whole.together: whole} if whole.together else {}
    if (folder := place.joinpath(study)).is_dir():
        workloads |= {Path(entry.name).stem: read(entry.read_text(), name) for entry in folder.iterdir()}
    if transaction not in workloads:
        raise UsageError(f"study {study} has no workload '{transaction}': {nearest(transaction, workloads)}")
    return workloads[transaction]


def read(text: str, name: str) -> Workload:
    """Parse a workload file's text. Raises UsageError if its `like` names an unknown workload."""
    content = tomllib.loads(text)
    if like := content.get("like", ""):
        if like not in names():
            raise UsageError(f"workload '{name}': like = '{like}' is not a workload: {nearest(like, names())}")
        content = {**tomllib.loads(resources.files(__name__).joinpath(f"{like}.toml").read_text()), **content}
    return msgspec.structs.replace(msgspec.convert(content, Workload), name=name)


def has_secrets(workload: Workload) -> bool:
    """Whether any of its SQL marks a value as secret (`secret_sql`). Pure."""
    texts = [workload.load, workload.check, *(transaction.script for transaction in workload.transaction)]
    texts += [str(text) for overrides in workload.dialect.values() for text in overrides.values()]
    return any(secret_sql.used(text) for text in texts)


def fitting(fits: Callable[[Workload], object]) -> str:
    """List the workloads for which `fits` is true, for a message: `kv, search`."""
    return ", ".join(name for name in names() if fits(get(name)))


def has_marks(workload: Workload) -> bool:
    """Whether it marks requests that are encrypted even where most are not. Pure."""
    return any(requests.marks(transaction.script) for transaction in workload.transaction)


def creates(workload: Workload, dialect: str) -> bool:
    """Whether it fills tables of its own. Pure."""
    overrides = workload.dialect.get(dialect, {})
    texts = [str(overrides.get(name, getattr(workload, name))) for name in ("load", "loaded")]
    return bool(workload.people or workload.records or any(text.strip() for text in texts))


def size(text: str | int, where: str) -> int:
    """Parse a number of bytes or a plain number: 4096, 100B, 64KB, 1MB, 1MiB. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+)\s*([KMG]i?B|B)?\s*", str(text), re.IGNORECASE)
    if match is None:
        raise UsageError(f"{where}: '{text}' is not a number or a size such as 64KB or 1MB")
    return int(match.group(1)) * _UNITS[(match.group(2) or "").upper()]


def prepare(
    workload: Workload,
    dialect: str,
    given: Mapping[str, str],
    rows: int = 0,
    codec: Codec | None = None,
    csv: Path | None = None,
    *,
    marked_only: bool = False,
    defined: Mapping[str, str] = MappingProxyType({}),
    simple: bool = False,
) -> Program:
    """Fill in the workload's parameters for a server's dialect. Raises UsageError naming workload and parameter.

    `codec`: encrypts the secrets in the encrypted arm; None: nothing does. `csv`: the register's file, for a workload
    of records. `marked_only`: encrypt only the requests that are marked SECURE. `defined`: variables of the user's
    scripts with their values. `simple`: statements travel as texts.
    """
    from ciphercost.load.tables import hospital_register, hospital_sql

    where = f"workload {workload.name}"
    parameters: dict[str, int | str] = {name: size(value, where) for name, value in workload.parameters.items()}
    for name, value in {**{name: defined[name] for name in parameters.keys() & defined.keys()}, **given}.items():
        if name not in parameters:
            raise UsageError(f"{where} has no parameter '{name}': {nearest(name, parameters)}")
        parameters[name] = size(value, f"{where}, {name}")
        if parameters[name] == 0:
            raise UsageError(f"{where}: {name} must be at least 1")
    if rows:
        if "rows" in parameters:
            parameters["rows"] = rows
        elif "rows" not in workload.derived:
            raise UsageError(f"{where} has no table with a settable number of rows; remove --rows")
        elif given:
            raise UsageError(f"{where}: both --rows and --set {next(iter(given))} set its size; remove one of them")
    if csv:
        # By default the whole file.
        parameters["rows"] = hospital_register.count(csv, int(parameters["rows"]) if rows or "rows" in given else 0)
    for name, expression in workload.derived.items():
        if name == "rows" and rows and name not in workload.parameters:
            parameters[name] = rows
            continue
        parameters[name] = script.evaluate(expression, parameters, f"{where}, derived {name}")
    documents = {
        path: script.evaluate(size_, parameters, f"{where}, document {path}")
        for path, size_ in workload.documents.items()
    }
    overrides = workload.dialect.get(dialect, {})
    yield_records = (
        hospital_register.source(csv, int(parameters["rows"]), int(parameters.get("data_seed", 0)))
        if workload.records
        else _none
    )

    own = {**parameters, **defined}
    """What the user's scripts find."""

    def made_up(of: Codec) -> Iterator[str]:
        if workload.people:
            batch = int(overrides.get("batch", PEOPLE_BATCH))
            yield from people.inserts(workload.people, int(parameters["rows"]), int(parameters["data_seed"]), batch)
        yield from hospital_sql.inserts(yield_records(), dialect, of, workload.name)

    def parsed(transaction: Transaction) -> Iterator[tuple[str, int, Script]]:
        text, here = str(overrides.get(transaction.name, transaction.script)), _place(workload, transaction)
        if dialect == "http":
            asked = requests.parse(text, own, here, Path(workload.directory) if workload.own_sql else None)
            yield transaction.name, transaction.weight, requests.unmarked(asked, clear=marked_only)
            return
        if dialect in commands.DIALECTS:
            yield transaction.name, transaction.weight, commands.parse(text, own, here)
            return
        if workload.own_sql:
            given = [Variable(name, "constant", value=value) for name, value in transaction.constants.items()]
            parsed_script = script.parse(text, own, here, given, dialect, simple=simple)
            yield transaction.name, transaction.weight, parsed_script
            return
        sets = hospital_sql.variables(text, yield_records()) if workload.records else []
        # A transaction becomes one script per set of values, and the scripts share its weight. So all weights are
        # multiplied by `unit`.
        unit = hospital_sql.SAMPLES if workload.records else 1
        known = {**parameters, **hospital_sql.NEWEST} if workload.records else parameters
        for variables in sets or [()]:
            weight = transaction.weight * unit // max(1, len(sets))
            plain = script.parse(secret_sql.expand(text, where=here), known, here, variables, dialect)
            if codec:
                sealed = script.parse(secret_sql.expand(text, codec, here), known, here, variables, dialect)
                plain = script.by_arm(plain, sealed)
            yield transaction.name, weight, plain

    def tables(of: Codec) -> Tables:
        load = secret_sql.expand(str(overrides.get("load", workload.load)), of, f"{where}, load")
        check = secret_sql.expand(str(overrides.get("check", workload.check)), of, f"{where}, check")
        if isinstance(of, Encrypting) and of.client_side:
            if OPEN in load or SEAL in load:
                raise UsageError(
                    f"{where}, load: in a load the application can seal only literals; use --workload hospital-client"
                )
            if opened.opens(check, f"{where}, check"):
                # Read them as hexadecimal digits, since the agent's query returns only valid text.
                check = re.sub(rf"{re.escape(OPEN)}([\w.]+)", lambda match: of.hex(match[1]), check)
        rest = Load(str(overrides.get("loaded", workload.loaded)), parameters, f"{where}, loaded")

        def more() -> Iterator[str]:
            yield from made_up(of)
            yield from (step.sql for step in rest)

        check = script.fill(check, parameters, f"{where}, check")
        return Tables(Load(load, parameters, f"{where}, load", more), check, of)

    transactions = tuple(
        weighted_script
        for transaction in workload.transaction
        for weighted_script in parsed(transaction)
        if weighted_script[1]
    )
    large = str(overrides.get("large", workload.large))
    replica = overrides.get("replication", workload.replication)
    thoughts = [
        weight * script.think_us(agent_script, f"{where}, {name}") for name, weight, agent_script in transactions
    ]
    clear = tables(PLAIN)
    return Program(
        name=workload.name,
        load=clear.load,
        check=clear.check,
        sealed=tables(codec) if codec else None,
        key=codec.agent_key if codec else None,
        transactions=transactions,
        large=tuple(parsed(Transaction(name="large", script=large))) if large else (),
        read_only=workload.read_only or all(agent_script.read_only for _, _, agent_script in transactions),
        per_request=workload.per_request,
        clients=workload.clients,
        operation=workload.operation,
        replication=replica,
        backlog=tuple(parsed(Transaction(name="backlog", script=replica["backlog"]))) if replica else (),
        documents=documents,
        creates=creates(workload, dialect),
        arrivals=workload.arrivals,
        arrived=workload.arrived,
        loop=workload.loop,
        draw=workload.draw,
        lengths=workload.lengths,
        rate=workload.rate,
        mode=workload.protocol or "prepared",
        holds_values=bool(workload.written_for),
        values=_values(workload, parameters, where),
        think_s=sum(thoughts) / max(1, sum(weight for _, weight, _ in transactions)) / 1e6,
        parameters=parameters | ({"csv": csv.name} if csv else {}),
    )


def _values(workload: Workload, parameters: Mapping[str, int | str], where: str) -> dict[str, float]:
    """Return the secret values of one operation on average, by what happens to them; {} unless every transaction tells them."""
    averages: dict[str, float] = {}
    weights = sum(transaction.weight for transaction in workload.transaction)
    for transaction in workload.transaction:
        if transaction.values is None:
            return {}
        for name, expression in transaction.values.items():
            count = script.evaluate(expression, parameters, f"{where}, {transaction.name}, {name}")
            averages[name] = averages.get(name, 0.0) + count * transaction.weight / weights
    return averages


def _place(workload: Workload, transaction: Transaction) -> str:
    """What an error in a script begins with."""
    return (
        f"--sql {transaction.name}"
        if workload.own_sql and not workload.file
        else f"workload {workload.name}, {transaction.name}"
    )


def _none() -> Iterator[Any]:
    return iter(())

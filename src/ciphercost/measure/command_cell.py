"""command_cell: opens a session of a cell whose load commands of the user's make: what runs before it, the proof, the load client."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Collection
from pathlib import Path

from ciphercost.engines import Server
from ciphercost.engines._command_server import CommandsServer
from ciphercost.host import control_groups, idle
from ciphercost.host.environment import child_environment
from ciphercost.host.readable_files import own_umask
from ciphercost.load import command_secrets, command_words
from ciphercost.load.command_client import CommandClient, Place, last_words
from ciphercost.load.command_place import places
from ciphercost.load.peer_checks import Verdict
from ciphercost.measure import profiling
from ciphercost.measure.pause import Pause
from ciphercost.measure.recorded_facts import UNVERIFIED, describe_idle, spell, warn
from ciphercost.measure.run_context import CellRun, LiveCell, Run
from ciphercost.measure.samplers import samplers_of
from ciphercost.measure.session import Session
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import RunError, Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import Warning_
from ciphercost.model.slices import UNSEEN
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule
from ciphercost.prove import command_verify, command_witness, proof_verdict
from ciphercost.prove.command_witness import Trial
from ciphercost.provision import server_pairs
from ciphercost.provision.server_pair import ServerPair

BETWEEN_SECONDS = 600.0
"""Time that a command before or after a session may take."""


def open_commands(
    session: int,
    unit: CellRun,
    cores: tuple[tuple[int, ...], tuple[int, ...]],
    awake: idle.CpuIdlePolling,
    stack: contextlib.ExitStack,
    run: Run,
) -> LiveCell:
    """Run what comes before a session, prove both arms' commands, and make the client that runs them. `stack` closes what was opened.

    `cores`: CPUs of the server, which ciphercost does not choose here, and of the commands. `awake`: keeps them from halting.
    """
    bench, measurement, facts = unit.bench, unit.measurement, unit.measurement.facts
    load = bench.planned.spec.command
    assert load is not None
    measurement.display.phase(measurement.number, session, "starting and proving")
    log = bench.logs / "commands.log"
    between = functools.partial(run_between, ca=facts.spec.ca, log=log)
    if load.after:
        stack.callback(between, "--after", load.after, bench.cell.url)
    if load.before:
        between("--before", load.before, bench.cell.url)
    pair = server_pairs.start(
        bench, session, set(), set(cores[1]), schedule.arms(run.record.facts.seed, measurement.number, session)
    )
    told_server(load, pair.by_arm.values())
    places = {arm: Place(*pair.connect[arm].address, facts.spec.ca) for arm in ARMS}
    client = stack.enter_context(
        CommandClient(
            load,
            places,
            run.reader(load),
            clients=bench.clients,
            run_id=run.supervisor.run_id,
            cpus=pair.agent_cpus,
            log=log,
        )
    )
    client.watch(pair.watch.look)
    trials = proven(session, unit, client, load, run)
    known = {name: value for name in ("verified", "verified_by") if (value := facts.encryption.get(name))}
    if not known and (trial := trials.get("encrypted")) and trial.passed:
        known = verification(facts, command_verify.verified(client, trial.streams, bench.directory))
    describe_commands(facts, load, pair, trials, known)
    describe_idle(facts, pair)
    samplers = samplers_of(pair, client, stack)
    if pair.server is None and not any(server.cgroups for server in pair.servers):
        unseen = Warning_(
            "server-not-seen",
            "the server's processes can't be seen from here: client-side figures only; name them with --server-pid, --server-unit or "
            "--server-cgroup",
        )
        warn(facts, unseen.code, [unseen])
    pause = stack.enter_context(contextlib.closing(Pause({})))
    session_ = Session(session, measurement, pair, client, samplers, lambda: None, pause, awake)
    blocks = schedule.blocks(run.record.facts.seed, measurement.number, session, schedule.PROFILED)
    profiled = profiling.phase(session_, blocks, pair, client, run.supervisor, run.scratch)
    stack.callback(profiled.close)
    pair.watch.check()
    settle, capacity, *_ = session_.phases()
    return LiveCell(session_, tuple(map(pair.watch.explained, (settle, capacity, profiled))))


def proven(session: int, unit: CellRun, client: CommandClient, load: CommandLoad, run: Run) -> dict[Arm, Trial]:
    """Prove what both commands send, and record it. A control's are only tried. Raises Unproven, and RunError if a command fails."""
    if unit.bench.mechanism.layer == "control":
        command_witness.once(client, "plain")
        return {}
    proofs, trials = command_witness.prove(client, load.canary, session)
    run.record.prove(unit.measurement.number, proofs)
    contradict = [proof for proof in proofs if proof.code != UNSEEN]
    if reason := proof_verdict.failed(contradict):
        raise Unproven(reason)
    if not load.unproven and (reason := proof_verdict.unproven(proofs, ["wire"])):
        raise Unproven(f"{reason}; --unproven measures without proof, and the result is labelled so")
    return trials


def verification(facts: CellFacts, met: tuple[Verdict, bool] | None) -> dict[str, str]:
    """What the encrypted arm's command makes of an impostor, for the record. Warns if it does not verify the server, or if that is unknown."""
    verdict, by_name = met or (None, False)
    if verdict is not None and verdict.by:
        by = "" if by_name else "chain" if verdict.by == "certificate" else verdict.by
        return {"verified": "yes"} | ({"verified_by": by} if by else {})
    if verdict is None:
        why = "it can't be sent to an impostor, which speaks TLS from the first byte, and PostgreSQL's and MySQL's protocols"
    else:
        why = verdict.words
    accepts = verdict is not None and verdict.known
    text = f"the encrypted arm's command does not verify the server: {why}; let it, if your application does"
    unknown = f"whether the encrypted arm's command verifies the server is not known: {why}"
    warn(facts, UNVERIFIED, [Warning_(UNVERIFIED, text if accepts else unknown)])
    return {"verified": "no" if accepts else "unknown"}


def describe_commands(
    facts: CellFacts, load: CommandLoad, pair: ServerPair, trials: dict[Arm, Trial], known: dict[str, str]
) -> None:
    """Record what a session's commands negotiated, and how the arms differ. `known`: how the encrypted arm's command verifies the server."""
    facts.encryption = {}
    if trial := trials.get("encrypted"):
        facts.encryption = {"protocol": trial.protocol, "cipher": trial.cipher}
        facts.encryption |= known
        facts.config_diff = [f"command: {command_secrets.shown(load.plain)} | {command_secrets.shown(load.encrypted)}"]
        if trial.outcome.figures.tool:
            facts.client = trial.outcome.figures.tool
    if pair.server is not None and pair.server.library:
        facts.encryption["server_library"] = pair.server.library
    facts.cores = {"server": "", "agent": spell(pair.agent_cpus)}


def told_server(load: CommandLoad, servers: Collection[Server]) -> None:
    """Find the server's processes where the user says they are. Raises RunError if they are not there."""
    pid, group = 0, None
    if load.server_pid:
        pid = process(load.server_pid)
    elif load.server_unit:
        group = unit_group(load.server_unit)
    elif load.server_cgroup:
        group = Path(load.server_cgroup)
    if group is not None and not (group / "cgroup.procs").exists():
        raise RunError(f"{group}: not the directory of a control group that exists now")
    if group is not None and not control_groups.counts_cpu(group):
        raise RunError(
            f"{group}: this control group does not count CPU time: name the one in the hierarchy with cpuacct.usage, or of version 2"
        )
    if group is not None and not control_groups.members(group):
        raise RunError(f"{group}: no process is in this control group: start the server, or name its group")
    for server in servers:
        if isinstance(server, CommandsServer):
            server.told(pid, group)


def process(text: str) -> int:
    """The process whose number this is, or whose number this file holds. Raises RunError."""
    number = text
    if not text.isdigit():
        try:
            number = Path(text).read_text().strip()
        except OSError as error:
            raise RunError(
                f"--server-pid {text}: neither a number nor a file that can be read ({error.strerror})"
            ) from None
    if not number.isdigit() or not Path(f"/proc/{number}").exists():
        raise RunError(f"--server-pid {text}: there is no process {number[:20]}")
    return int(number)


def unit_group(unit: str) -> Path:
    """The control group of a systemd unit. Raises RunError."""
    try:
        done = subprocess.run(
            ["systemctl", "show", "--property=ControlGroup", "--value", "--", unit],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            env=child_environment(),
        )
        asked = "systemd has no such unit that runs" if done.returncode == 0 else last_words(done.stderr)
        path = done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        asked, path = f"can't ask systemd ({error})", ""
    if path and (group := control_groups.counting(path)):
        return group
    found = control_groups.of_unit(unit)
    if len(found) == 1:
        return found[0]
    several = f"; several groups have its name: {', '.join(map(str, found[:3]))}" if found else ""
    raise RunError(f"--server-unit {unit}: {asked}{several}; name the group with --server-cgroup")


def run_between(option: str, text: str, url: str, *, ca: str, log: Path) -> None:
    """Run the user's command before or after a session. What it starts may go on: it is the user's server. Raises RunError."""
    host, port = places(url)[0]
    words = command_words.filled(command_words.words(option, text), {"host": host, "port": port, "ca": ca})
    began = log.stat().st_size if log.exists() else 0
    try:
        # Not a pipe: a server that it starts may keep its output open.
        with log.open("ab") as output:
            done = subprocess.run(
                words,
                umask=own_umask(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=BETWEEN_SECONDS,
                start_new_session=True,
                env=os.environ,
            )
    except subprocess.TimeoutExpired:
        raise RunError(
            f"{option}: {words[0]} did not end within {BETWEEN_SECONDS:g} s; it must not wait for the server that it starts"
        ) from None
    except OSError as error:
        raise RunError(f"{option}: can't run {words[0]}: {error.strerror}") from None
    if done.returncode:
        with log.open("rb") as file:
            file.seek(max(began, log.stat().st_size - 4096))
            said = last_words(file.read().decode(errors="replace"))
        raise RunError(f"{option}: {words[0]} failed with exit status {done.returncode}{f': {said}' if said else ''}")

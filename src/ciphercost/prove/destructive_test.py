"""destructive_test: puts a disposable server pair at rest through tests that no running session could survive. I/O, no
load.

Each arm's server writes temporary data and is then killed; both times the disk is scanned. Then its key is removed, and
it must not start. None of this touches the server pair that is measured.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ciphercost.engines import Server
from ciphercost.engines.capabilities.storage import Spill, StoresData
from ciphercost.host import canary_scan, deadlines
from ciphercost.host.process_end import kill_tree
from ciphercost.host.run_ownership import hand_over
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, KeyState
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import Finding, Proof, Witness
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import rest_witnesses
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pairs import encryption_line

SESSION = 1
"""The proofs count for the first session: without them nothing is measured."""
LAST_WISH_SECONDS = 10.0
LARGEST_KEY_FILE = 1 << 20
LOOKS, FIRST_PAUSE, LONGEST_PAUSE = 43, 0.01, 0.1
"""Number of scans during a running statement, for data that exists only meanwhile, and seconds between them: each pause is twice the one
before, until it is the longest."""


class Outcome(msgspec.Struct):
    """The test's result."""

    proofs: list[Proof] = []
    findings: list[Finding] = []
    checks: dict[Arm, str] = {}
    """Answers of the workload's check query."""
    rotation_s: float | None = None
    """Seconds that the server took to rotate its key. None: it can't."""


def run(bench: PreparedCell) -> Outcome:
    """Put a disposable pair of both arms of a cell at rest through the test. Raises RunError if a server can't even be
    started.
    """
    mechanism = bench.mechanism
    assert isinstance(mechanism, AtRest)
    outcome = Outcome()
    leaks: dict[Arm, dict[str, canary_scan.Seen]] = {}
    work = bench.directory / "doomed"
    for arm in ARMS:
        with keys_kept(bench.shared.secrets), bench.volume(arm, work / arm) as volume:
            bench.fetch(arm, volume)
            try:
                leaks[arm] = _arm(bench, mechanism, arm, volume, outcome)
            finally:
                shutil.rmtree(volume.path, ignore_errors=True)
    if len(set(outcome.checks.values())) > 1:
        raise AgentError(f"the arms do not hold the same rows: {outcome.checks}", "rows")
    logs = canary_scan.search(canary_scan.below([bench.logs]), bench.shared.canary)
    control = leaks["plain"] if bench.side("plain") == "plain" else leaks["encrypted"]
    outcome.findings += [
        *_findings(mechanism, control, leaks["encrypted"]),
        *_of_logs(logs),
        *mechanism.findings(bench.rest),
    ]
    return outcome


def _arm(
    bench: PreparedCell, mechanism: AtRest, arm: Arm, volume: Volume, outcome: Outcome
) -> dict[str, canary_scan.Seen]:
    """Test one arm. Returns what was seen of its temporary data, by the name of the spill."""

    def add_proof(witness: Witness, passed: bool, detail: str) -> None:
        outcome.proofs.append(
            Proof(arm=arm, witness=witness, passed=passed, detail=" ".join(detail.split()), session=SESSION)
        )

    server = bench.start(arm, volume)
    try:
        connection = bench.connection(arm, dict.fromkeys(ARMS, server)).single
        agent = bench.helper(connection)
        try:
            agent.connect("destructive-test", connection)
            look = ArmAtRest(bench.side(arm), bench.rest_of(arm), volume, server, agent, "destructive-test", connection)
            if bench.program.check:
                outcome.checks[arm] = str(look.query(bench.program.check))
            word = canary_scan.canary()
            spilt = {
                spill.name: _spill(look, mechanism, spill, word) for spill in StoresData.of(bench.engine).spills(word)
            }
            if look.arm == "encrypted" and (refused := mechanism.refuses(look)) is not None:
                add_proof("server", *refused)
            # Rotate last: afterwards a connection may fail at everything that needs the old key.
            if look.arm == "encrypted" and (statements := mechanism.rotate(look)):
                began = time.monotonic()
                for statement in statements:
                    look.query(statement)
                outcome.rotation_s = time.monotonic() - began
            last = canary_scan.canary()
            look.query(StoresData.of(bench.engine).keep_canary(last))
            kill_tree(server.pid or agent.pid, LAST_WISH_SECONDS)
        finally:
            with contextlib.suppress(RunError, AgentError):
                agent.close()
        # The server is dead: nobody holds a file open.
        mechanism.flush(volume)
        for name, wanted in (("killed", last), ("killed, the first row", bench.shared.canary)):
            seen = canary_scan.search(canary_scan.below(volume.backing), wanted)
            passed, detail = rest_witnesses.disk_report(seen, look, mechanism)
            add_proof("disk", passed, f"{name}: {detail}")
    finally:
        server.stop()
    if look.arm == "encrypted" and not bench.engine.embedded:
        for state in mechanism.key_states:
            add_proof("server", *_without_key(bench, mechanism, arm, volume, state))
    return spilt


@contextlib.contextmanager
def keys_kept(secrets: Path) -> Iterator[None]:
    """Restore the keys afterwards: a server that gets a new key may discard the old one, which other copies need."""
    kept = {
        path: path.read_bytes()
        for path in secrets.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_KEY_FILE
    }
    try:
        yield
    finally:
        for path, content in kept.items():
            if not path.exists() or path.read_bytes() != content:
                _own_file(path, content)


def _own_file(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    hand_over(path)


def _spill(look: ArmAtRest, mechanism: AtRest, spill: Spill, word: str) -> canary_scan.Seen:
    """Make the server write temporary data, and scan for it while it exists."""
    name = f"spill-{look.arm}"
    look.agent.connect(name, look.connect)

    def seen() -> canary_scan.Seen:
        return rest_witnesses.at_rest(look, mechanism, word)

    try:
        *first, last = spill.statements
        for statement in first:
            look.agent.query(name, statement, timeout=deadlines.load())
        if not spill.during:
            look.agent.query(name, last, timeout=deadlines.load())
            return seen()
        with ThreadPoolExecutor(1) as other:
            running = other.submit(look.agent.query, name, last, timeout=deadlines.load())
            scan = _watch(seen, lambda: running.done(), look)
            running.result()
        return scan
    finally:
        with contextlib.suppress(AgentError):
            look.agent.disconnect(name)


def _watch(seen: Callable[[], canary_scan.Seen], over: Callable[[], bool], look: ArmAtRest) -> canary_scan.Seen:
    """Scan repeatedly until temporary data is found or the statement has ended."""
    scan, pause = canary_scan.Seen(), FIRST_PAUSE
    for _ in range(LOOKS):
        scan = seen()
        if over() or any(rest_witnesses.is_temporary(name, look) for name in scan.hits):
            break
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return scan


def _without_key(bench: PreparedCell, mechanism: AtRest, arm: Arm, volume: Volume, state: KeyState) -> tuple[bool, str]:
    """Whether the server refuses to start, or to return its data, when its key is missing or replaced by another."""
    words = "without its key" if state == "missing" else "with another key"
    with mechanism.key_taken(state, bench.rest_of(arm), volume.path):
        try:
            server = bench.start(arm, volume)
        except (RunError, OSError) as error:
            return True, f"{words} it does not start: {_reason(str(error))}"
        with stopped(server):
            connection = bench.connection(arm, dict.fromkeys(ARMS, server)).single
            with bench.helper(connection) as agent:
                try:
                    agent.connect("keyless", connection)
                    rows = agent.query("keyless", StoresData.of(bench.engine).first_canary)
                except AgentError as error:
                    return True, f"{words} it starts, but returns no data: {error}"
    if [bench.shared.canary] in rows:
        return False, f"{words} it starts and returns the canary"
    return True, f"{words} it starts, but returns no data"


@contextlib.contextmanager
def stopped(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.stop()


def _reason(text: str) -> str:
    """The most informative line of a server's last output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    severe = next((line for line in lines[1:] if "FATAL" in line or "ERROR" in line), "")
    return severe[:200] or encryption_line(text) or (lines or ["it ended"])[0][:200]


Leaks = Mapping[str, canary_scan.Seen]
"""What was seen of an arm's temporary data, by the name of the spill."""


def _findings(mechanism: AtRest, control: Leaks, leaks: Leaks) -> list[Finding]:
    """Temporary data that is unencrypted although the data itself is encrypted. Counts only if the control, the plain arm, shows it
    too; if both arms are encrypted there is none. Pure.
    """
    findings = []
    for name, plain in control.items():
        encrypted = leaks.get(name, canary_scan.Seen())
        if not plain.hits:
            if control is leaks:
                continue
            if any(other.startswith(f"{name} where") and seen.hits for other, seen in control.items()):
                continue  # one of ciphercost's settings keeps it in memory; without that setting, it has its own finding
            text = f"{name}: not seen on disk even in the plain arm: it stayed in memory, or its location is unknown"
            findings.append(Finding("temporary-data-not-seen", "info", text))
        elif encrypted.hits:
            where, count = max(encrypted.hits.items(), key=lambda hit: hit[1])
            text = f"{name}: unencrypted on disk, {count} times in {where}"
            findings.append(Finding("temporary-data-in-clear", "medium", text, mechanism.advice(where)))
    return findings


def _of_logs(seen: canary_scan.Seen) -> list[Finding]:
    return [
        Finding("log-in-clear", "high", f"the server's log {name} contains unencrypted data, {count} times")
        for name, count in seen.hits.items()
    ]

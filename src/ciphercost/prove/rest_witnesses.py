"""rest_witnesses: checks what the server reports about its files, and scans the files themselves for the canary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path

from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import canary_scan
from ciphercost.host.procfs import tree
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import NULL_SEEN, Probe

TEMPORARY = "temporary, and judged separately"
NAMED = 3
"""How many of the files that contain the canary are named."""


def server_at_rest(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Check that the server returns the canary, and reports the state of its files that matches the arm."""
    assert isinstance(probe.mechanism, AtRest)
    look = probe.look(arm)
    engine = StoresData.of(probe.engine)
    if look.query(engine.first_canary) != [[probe.pair.canary]]:
        return False, "the canary row is missing"
    right, words = probe.mechanism.status(look)
    if not engine.persistence:
        return right, words
    kept, how = engine.persists(look.query(engine.persistence))
    return right and kept, f"{words}; {how}"


def disk(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Scan every file of the arm, including unlinked ones: the plain arm must contain the canary, the encrypted arm
    must not.

    `destructive_test` judges temporary files: what leaks there is a finding.
    """
    assert isinstance(probe.mechanism, AtRest)
    look = probe.look(arm)
    volumes = [server.volume for server in probe.pair.by_arm.values() if server.volume]
    others = [path for volume in volumes for path in (volume.path, *volume.backing)]
    seen = at_rest(look, probe.mechanism, probe.pair.canary, others)
    passed, detail = disk_report(seen, look, probe.mechanism)
    if not passed:
        return passed, detail
    shown, words = probe.mechanism.structure(look)
    return shown, f"{detail}; {words}" if words else detail


def at_rest(look: ArmAtRest, mechanism: AtRest, word: str, others: Iterable[Path] = ()) -> canary_scan.Seen:
    """Scan everything that the arm's server has written: its data directory and files that only it still holds open.

    `others`: places of another arm, which an agent with both arms' files open holds too.
    """
    mechanism.flush(look.volume)
    pids = tree(look.server.pid or look.agent.pid)
    # The mount of an encrypting file system shows everything decrypted, so scan the files below it instead.
    device = look.volume.path.stat().st_dev if mechanism.loaded_once else None
    open_files = [
        (name, path)
        for name, path in canary_scan.held_open(pids, (*look.volume.backing, look.volume.path, *others))
        if device is None or path.stat().st_dev != device
    ]
    seen = canary_scan.search((*canary_scan.below(look.volume.backing), *open_files), word)
    seen.hits = {name.removeprefix(f"{look.volume.path}/"): count for name, count in seen.hits.items()}
    return seen


def disk_report(seen: canary_scan.Seen, look: ArmAtRest, mechanism: AtRest) -> tuple[bool, str]:
    """The disk witness's report on an arm that was scanned."""
    passed, detail = judge_disk(seen, look.arm, lambda name: excused(name, look, mechanism))
    unseen = mechanism.searched(look.volume)
    return passed, f"{detail} ({unseen})" if unseen else detail


def excused(name: str, look: ArmAtRest, mechanism: AtRest) -> str:
    """Why the content of this file is a finding and not a failure: it is temporary, or the user asked to leave it
    unencrypted. Empty: neither.
    """
    if is_temporary(name, look):
        return TEMPORARY
    left = mechanism.left_in_clear(look.rest) if look.arm == "encrypted" else {}
    by = next((by for pattern, by in left.items() if fnmatch(name, pattern)), "")
    return f"left unencrypted by {by}" if by else ""


def is_temporary(name: str, look: ArmAtRest) -> bool:
    """Whether a file, named relative to the arm's data, holds temporary data: by its name, or because nobody else could
    open it.
    """
    return name.endswith(" (deleted)") or any(
        fnmatch(name, pattern) for pattern in StoresData.of(look.rest.engine).temporary
    )


def judge_disk(seen: canary_scan.Seen, arm: Arm, excuse: Callable[[str], str] = lambda _: "") -> tuple[bool, str]:
    """Whether the disk content matches the arm. `excuse`: why a file does not concern this witness; empty: it does.
    Pure.

    Excused files are named all the same, because the witness has seen them.
    """
    if not seen.size:
        return False, NULL_SEEN
    reasons = {name: excuse(name) for name in seen.hits}
    lasting = [name for name, reason in reasons.items() if not reason]
    others = [
        f"{named(names)} ({reason}; {times(sum(seen.hits[name] for name in names))})"
        for reason in dict.fromkeys(filter(None, reasons.values()))
        if (names := [name for name, its_reason in reasons.items() if its_reason == reason])
    ]
    if lasting:
        beside = f"; and in {'; in '.join(others)}" if others else ""
        return arm == "plain", f"the canary is in {named(lasting)} ({seen}){beside}"
    if others:
        return arm == "encrypted", f"of {seen}, none contains the canary except {'; '.join(others)}"
    return arm == "encrypted", f"the canary is in none of {seen}"


def times(count: int) -> str:
    """`once`, `3 times`. Pure."""
    return "once" if count == 1 else f"{count} times"


def named(names: list[str]) -> str:
    """The first few names. Pure."""
    return f"{', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"

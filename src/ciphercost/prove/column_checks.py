"""column_checks: checks, on the server and on disk, whether columns are encrypted and what they leak. I/O."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import canary_scan
from ciphercost.load.codec import PLAIN
from ciphercost.mechanisms._column import IV
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import Finding, Severity
from ciphercost.prove import leakage
from ciphercost.provision.columns import FLIPS, LENGTH, SHOWN, ArmView, rows, schema_name, word


def server(arm_view: ArmView) -> tuple[bool, str]:
    """Check that the row decrypts with the right key and does not with a wrong one."""
    secrets, wanted = arm_view.secrets, word(arm_view.canary, arm_view.arm)
    try:
        text = arm_view.text(secrets.codec if arm_view.encrypts else PLAIN)
    except AgentError as error:
        return False, f"the canary row could not be read back: {error}"
    if text != wanted:
        return False, f"the canary row does not read back as written: {str(text)[:60]}"
    if not arm_view.encrypts:
        return True, "the canary row reads back as written"
    stored = arm_view.ask(secrets.codec.hex("word"))
    if not stored or wanted.encode().hex() in stored.lower():
        return False, f"the canary is in the column unencrypted: {str(stored)[:60]}"
    # Use the same expression as for the wrong key. Otherwise, an empty answer there would prove nothing.
    control = arm_view.opened(secrets.codec)
    if control is None or bytes.fromhex(control) != wanted.encode():
        return False, f"the canary's bytes do not decrypt with their own key: {str(control)[:60]}"
    try:
        other = arm_view.opened(secrets.wrong)
    except AgentError as error:
        if arm_view.text(secrets.codec) != wanted:  # the connection itself may be gone
            return False, f"the canary row could not be read a second time, after: {error}"
        return True, f"the canary row decrypts with its key; with another: {error}"
    if other is not None and bytes.fromhex(other) == wanted.encode():
        return False, "the canary row decrypts with another key too"
    instead = "nothing" if other is None else "other bytes"
    return (
        True,
        f"the canary row decrypts with its key, and gives {instead} with another; {len(stored) // 2} bytes stored",
    )


def disk(arm_view: ArmView) -> tuple[bool, str]:
    """Check that the server's files contain the plain arm's canary but not the encrypted arm's."""
    if not arm_view.places:
        stored = arm_view.ask(arm_view.secrets.codec.hex("word") if arm_view.encrypts else "word")
        clear = word(arm_view.canary, arm_view.arm)
        seen = bool(stored) and (clear in str(stored) or clear.encode().hex() in str(stored).lower())
        where = "the server's files can't be read from here; as the server itself shows it, the stored value "
        return seen != arm_view.encrypts, where + ("is unencrypted" if seen else "is encrypted")
    scan = canary_scan.search(canary_scan.below(arm_view.places), word(arm_view.canary, arm_view.arm))
    if not scan.size:
        return False, "no bytes seen: the witness examined nothing"
    names = ", ".join(list(scan.hits)[:SHOWN])
    if scan.hits:
        return not arm_view.encrypts, f"the canary is in {names} ({scan})"
    return arm_view.encrypts, f"the canary is in none of {scan}"


def findings(arm_view: ArmView) -> list[Finding]:
    """What the encrypted arm's stored bytes leak, each finding seen and counted. Raises AgentError."""
    codec, texts = arm_view.secrets.codec, rows(arm_view.canary, arm_view.arm)
    all_findings = written_keys(arm_view)
    stored = {number: bytes.fromhex(str(arm_view.ask(codec.hex("word"), number))) for number in texts}
    iv = "iv=random, which stores a separate IV with each value"
    if IV not in arm_view.secrets.mechanism.factors:
        iv = f"a mode that has an IV, with {iv}"
    all_findings += leakage.findings({number: text.encode() for number, text in texts.items()}, stored, iv)
    if not notices(arm_view, stored[1]):
        all_findings.append(leakage.UNAUTHENTICATED)
    return all_findings


def written_keys(arm_view: ArmView) -> list[Finding]:
    """Where the key, which is part of every statement, is written: in the server's files, or in logs that the server
    reports to keep.
    """
    secrets = arm_view.secrets
    key = secrets.key.reveal()
    if key not in secrets.codec.seal("''", LENGTH):
        return []
    key_findings = []
    if isinstance(secrets.engine, StoresData) and (logs := secrets.engine.statement_logs):
        for what, closes, severity in arm_view.agent.query(arm_view.name, logs):
            text = f"the server writes {what} to disk, including the key in the statements"
            key_findings.append(Finding("key-in-log", msgspec.convert(severity, Severity), text, str(closes)))
    if hits := canary_scan.search(canary_scan.below(arm_view.places), key).hits:
        text = f"the key is in the server's files unencrypted: {', '.join(list(hits)[:SHOWN])}"
        key_findings.append(Finding("key-in-files", "high", text, "what makes the server log statements"))
    return key_findings


def notices(arm_view: ArmView, stored: bytes) -> bool:
    """Whether the server rejects a stored value that was changed, wherever the change is. Raises AgentError if even the
    unchanged value does not decrypt.
    """
    codec = arm_view.secrets.codec
    if not arm_view.opened(codec, stored):
        raise AgentError("an unchanged stored value does not decrypt, so changed values can't be tested", "statement")
    for at in range(0, len(stored), max(1, len(stored) // FLIPS)):
        changed = bytearray(stored)
        changed[at] ^= 1
        text = None
        with contextlib.suppress(AgentError):
            text = arm_view.opened(codec, bytes(changed))
        if text is not None:
            return False
    return True


def sizes(sights: Iterable[ArmView]) -> dict[str, dict[str, int]]:
    """Bytes of each arm's tables and indexes, as the server counts them or its files show them."""
    by_arm: dict[str, dict[str, int]] = {}
    for arm_view in sights:
        engine = arm_view.secrets.engine
        asked = engine.sizes if isinstance(engine, OwnSchema | StoresData) else ""
        if asked:
            tables, indexes = (int(size or 0) for size in arm_view.agent.query(arm_view.name, asked)[0][:2])
        elif not isinstance(engine, OwnSchema):
            continue
        elif arm_view.places and (counted := engine.stored_bytes(arm_view.places[0], schema_name(arm_view.arm))):
            tables, indexes = counted
        else:
            continue
        by_arm[arm_view.arm] = {"table_bytes": tables, "index_bytes": indexes}
    return by_arm
